"""A pipeline made to run: tf.data."""
