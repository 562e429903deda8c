"""What `tf.train` has besides optimizers: decaying rates, moving averages, checkpoints."""
