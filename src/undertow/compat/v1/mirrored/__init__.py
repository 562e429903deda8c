"""TensorFlow's own modules, by their paths: tf.test, nest, config_pb2 and those that have the names of `tf`."""
