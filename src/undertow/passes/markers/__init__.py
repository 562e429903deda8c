"""What a graph marks with a node or an attribute becomes ordinary nodes: derivatives of tensors, and updates."""
