"""Training with Keras on TensorFlow: networks, optimizers, the train step and its capture."""
