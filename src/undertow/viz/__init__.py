"""Pictures of graphs and runs. Reads ir only: graphs and trace events."""
