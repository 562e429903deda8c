"""What a graph of compat.v1 knows: names, collections, scopes, seeds, shapes; what its functions capture."""
