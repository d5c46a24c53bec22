"""What TensorFlow trains on: devices, precision and determinism, set before anything is built."""

from typing import Any

import keras
import tensorflow as tf

from timesink.errors import ExperimentError
from timesink.experiment import Experiment


def prepare_devices(experiment: Experiment) -> Any:
    """Configure TensorFlow for an experiment; gives the distribution strategy."""
    training = experiment.training
    keras.utils.set_random_seed(experiment.seed)
    if training.deterministic:
        tf.config.experimental.enable_op_determinism()
    keras.config.set_dtype_policy(training.precision)
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    if training.replicas == 1:
        return tf.distribute.get_strategy()
    if gpus:
        if training.replicas > len(gpus):
            raise ExperimentError(
                f"training.replicas: found {training.replicas}, "
                f"allowed: at most the {len(gpus)} GPUs of this machine"
            )
        return tf.distribute.MirroredStrategy([f"GPU:{i}" for i in range(training.replicas)])
    (cpu,) = tf.config.list_physical_devices("CPU")
    logical = [tf.config.LogicalDeviceConfiguration() for _ in range(training.replicas)]
    tf.config.set_logical_device_configuration(cpu, logical)
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(training.replicas)])


def device_names(strategy: Any) -> list[str]:
    """Name the devices a strategy computes on."""
    if strategy.num_replicas_in_sync > 1:
        return [device.rsplit("device:", 1)[-1] for device in strategy.extended.worker_devices]
    return ["GPU:0" if tf.config.list_logical_devices("GPU") else "CPU:0"]


def peak_device_bytes(devices: list[str]) -> int | None:
    """Give the most memory a GPU held at once; None without GPUs."""
    gpus = [device for device in devices if device.startswith("GPU")]
    if not gpus:
        return None
    return max(int(tf.config.experimental.get_memory_info(gpu)["peak"]) for gpu in gpus)
