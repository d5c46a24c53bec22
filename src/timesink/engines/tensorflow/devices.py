"""What TensorFlow trains on: devices, precision and determinism, set before anything is built."""

import os
from contextlib import suppress
from typing import Any

import keras
import tensorflow as tf

from timesink import machine
from timesink.errors import ExperimentError
from timesink.experiment import Experiment


def prepare_devices(experiment: Experiment) -> Any:
    """Configure TensorFlow for an experiment; gives the distribution strategy."""
    training = experiment.training
    size_thread_pools()
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


def size_thread_pools() -> None:
    """Give TensorFlow as many threads as there are cores for it; what a user set stays.

    By itself it takes one for each CPU of the affinity mask, whatever a container's quota leaves.
    """
    threading = tf.config.threading
    pools = (
        (
            "TF_NUM_INTEROP_THREADS",
            threading.get_inter_op_parallelism_threads,
            threading.set_inter_op_parallelism_threads,
        ),
        (
            "TF_NUM_INTRAOP_THREADS",
            threading.get_intra_op_parallelism_threads,
            threading.set_intra_op_parallelism_threads,
        ),
    )
    for variable, threads, set_threads in pools:
        if variable not in os.environ and not threads():
            with suppress(RuntimeError):  # ops have run: the pools are there
                set_threads(machine.cores())


def thread_pools() -> dict[str, int]:
    """Tell the threads of TensorFlow's pools; 0 is its own choice."""
    threading = tf.config.threading
    return {
        "inter_op": threading.get_inter_op_parallelism_threads(),
        "intra_op": threading.get_intra_op_parallelism_threads(),
    }


def device_names(strategy: Any) -> list[str]:
    """Name the devices a strategy computes on."""
    if strategy.num_replicas_in_sync > 1:
        return [device.rsplit("device:", 1)[-1] for device in strategy.extended.worker_devices]
    return ["CPU:0" if shares_cores() else "GPU:0"]


def shares_cores() -> bool:
    """Tell whether networks are computed on the cores that make the images."""
    return not tf.config.list_logical_devices("GPU")


def peak_device_bytes(devices: list[str]) -> int | None:
    """Give the most memory a GPU held at once; None without GPUs."""
    gpus = [device for device in devices if device.startswith("GPU")]
    if not gpus:
        return None
    return max(int(tf.config.experimental.get_memory_info(gpu)["peak"]) for gpu in gpus)
