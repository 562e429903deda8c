"""Data-parallel training: a batch is cut into shards, workers compute their gradients and add these up in a ring."""
