"""Plans: what engines execute, as frozen data that prints and parses, and the passes that make them."""
