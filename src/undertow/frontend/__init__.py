"""Python functions become libraries of graphs: capture, and the builder that every face writes through."""
