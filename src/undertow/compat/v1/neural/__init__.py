"""What `tf.nn` has, by family: activations, cross entropies, normalization, convolutions, lookups, recurrence."""
