"""A user's own input pipeline: a tf.data.Dataset, or `package.module:function` that makes one."""

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from timesink.engines.users_code import find, told
from timesink.errors import UsageError


def own_batches(target: str | Any) -> Iterator[Any]:
    """Give the batches of a dataset, again and again from the start, as epochs of training are."""
    dataset = _dataset(target)
    cardinality = int(dataset.cardinality())
    if cardinality == 0:
        raise UsageError(f"{_named(target)}: the dataset is empty")
    repeated = dataset if cardinality == tf.data.INFINITE_CARDINALITY else dataset.repeat()
    batches: Iterator[Any] = iter(repeated)
    return batches


def _dataset(target: str | Any) -> Any:
    found = find(target, "pipeline") if isinstance(target, str) else target
    if callable(found) and not isinstance(found, tf.data.Dataset):
        try:
            found = found()
        except (Exception, SystemExit) as error:
            raise UsageError(f"pipeline: {_named(target)} failed: {told(error)}") from error
    if isinstance(found, tf.data.Dataset):
        return found
    raise UsageError(
        f"pipeline: {_named(target)} is a {type(found).__name__}: "
        "give a tf.data.Dataset, or a function without arguments that returns one"
    )


def _named(target: str | Any) -> str:
    return target if isinstance(target, str) else type(target).__name__
