"""Alternative APIs on the same library and engines: `compat.v1` is that of TensorFlow 1."""
