"""What loops carry and how they fold: `tf.TensorArray`, `tf.scan`, `tf.foldl`, `tf.foldr`."""
