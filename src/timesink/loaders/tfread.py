"""Where an image's first value comes from: a file, a record of a store, or nowhere.

Each source gives elements (position, index, …) and a function that turns one into the value that
its first stage takes. A position names an image whatever happens to it: what cannot be read is
an error of that element alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from timesink.datasets.images import ImageSet
from timesink.datasets.materialized import MaterializedStore
from timesink.datasets.tfrecord import RecordStore
from timesink.pipelines.order import Stream

READERS = 2
"""Threads that read ahead where more than one image is read at once."""
READ_TOGETHER = 16
"""Stored images that one call of Python reads: a call costs 100 µs, an image 20."""


@dataclass(frozen=True)
class Span:
    """A part of a stream."""

    first_position: int
    last_epoch: int
    careful: bool
    """Whether nothing may fail but the images themselves; slower."""
    delivered: frozenset[int] = frozenset()
    """Positions that need not come again."""
    ahead: bool = True
    """Whether the disk may be read before an image is asked for."""


@dataclass(frozen=True)
class Source:
    """Elements, and how one becomes the value of its image."""

    elements: Any
    """A dataset."""
    read: Callable[..., Any]
    """Takes index, …; gives what the first stage takes."""
    unpack: Callable[..., Any] = lambda *element: element
    """Takes an element; gives its position, index, …: a map of its own would cost 20 µs."""


def open_source(images: ImageSet, stream: Stream, span: Span) -> Source:
    """Give the elements of a span of a stream."""
    if isinstance(images.store, RecordStore):
        return _records(images, images.store, stream, span)
    elements = _elements(stream, span)
    if isinstance(images.store, MaterializedStore):
        return _stored(elements, images, images.store, span)
    paths = tf.constant(images.paths, tf.string)
    return Source(elements, lambda index: tf.io.read_file(tf.gather(paths, index)))


def _elements(stream: Stream, span: Span) -> Any:
    """Give (position, index) from one position on, to the end of an epoch."""
    length = stream.images_per_epoch
    first_epoch = span.first_position // length
    delivered = np.array(sorted(span.delivered), np.int64)

    def rest_of(epoch: int) -> Any:
        positions = np.arange(max(span.first_position, epoch * length), (epoch + 1) * length)
        order = stream.order(epoch)[positions - epoch * length]
        if len(delivered):
            kept = ~np.isin(positions, delivered)
            positions, order = positions[kept], order[kept]
        return positions, order

    @tf.autograph.experimental.do_not_convert
    def epoch_elements(epoch: Any) -> Any:
        with tf.name_scope("shuffle"):
            columns = tf.numpy_function(
                lambda e: rest_of(int(e)), [epoch], (tf.int64, tf.int64), stateful=False
            )
        for column in columns:
            column.set_shape([None])
        return tf.data.Dataset.from_tensor_slices(tuple(columns))

    return tf.data.Dataset.range(first_epoch, span.last_epoch).flat_map(epoch_elements)


def _stored(elements: Any, images: ImageSet, store: MaterializedStore, span: Span) -> Source:
    """Read stored images: several with each call of Python, unless one may fail alone."""
    records = tf.constant(images.records, tf.int64)
    dtype = tf.as_dtype(store.dtype)

    def read(index: Any) -> Any:
        value = tf.numpy_function(store.read, [tf.gather(records, index)], dtype, stateful=False)
        value.set_shape(store.shape)
        return value

    if span.careful or not span.ahead:
        return Source(elements, read)

    @tf.autograph.experimental.do_not_convert
    def read_many(positions: Any, indices: Any) -> Any:
        with tf.name_scope("read"):
            values = tf.numpy_function(
                store.read_many, [tf.gather(records, indices)], dtype, stateful=False
            )
        values.set_shape([None, *store.shape])
        return positions, indices, values

    read_ahead = elements.batch(READ_TOGETHER).map(
        read_many, num_parallel_calls=READERS, deterministic=True
    )
    return Source(read_ahead.unbatch(), _the_value)


def _bytes_of(store: RecordStore, chunk: int) -> bytes:
    """Read a chunk; what is not there is missing in the answer, and so in its images alone."""
    try:
        with open(store.files[store.chunk_file[chunk]], "rb") as file:  # noqa: PTH123
            file.seek(int(store.chunk_offset[chunk]))
            return file.read(int(store.chunk_bytes[chunk]))
    except OSError:
        return b""


def _records(images: ImageSet, store: RecordStore, stream: Stream, span: Span) -> Source:
    """Read chunk by chunk: each is one read of the disk, and its records share its bytes."""
    record_of = np.array(images.records, np.int64)
    paths = tf.constant([store.files[file] for file in store.chunk_file], tf.string)
    native = store.whole_files() and not span.careful
    length = stream.images_per_epoch
    first_epoch, offset = divmod(span.first_position, length)

    def places(chunk: int, indices: Any) -> Any:
        """Say where in the chunk each image is; a damaged record is empty, and so cannot decode."""
        records = record_of[indices]
        first = int(np.searchsorted(store.record_chunk, chunk))
        whole = store.intact(int(chunk))[records - first]
        return store.image_offset[records], np.where(whole, store.image_bytes[records], 0)

    @tf.autograph.experimental.do_not_convert
    def read_chunk(chunk: Any, indices: Any, wanted: Any) -> Any:
        with tf.name_scope("read"):
            if native:
                content = tf.cond(
                    wanted, lambda: tf.io.read_file(tf.gather(paths, chunk)), lambda: ""
                )
            else:
                content = tf.numpy_function(
                    lambda c, w: np.array(_bytes_of(store, int(c)) if w else b"", object),
                    [chunk, wanted],
                    tf.string,
                    stateful=False,
                )
            content.set_shape([])
            # After the read: what the checksums look at is in memory then.
            with tf.control_dependencies([content]):
                offsets, lengths = tf.numpy_function(
                    lambda c, i, w: places(c, i) if w else (i * 0, i * 0),
                    [chunk, indices, wanted],
                    (tf.int64, tf.int64),
                    stateful=False,
                )
        for column in (offsets, lengths):
            column.set_shape([None])
        return content, indices, offsets, lengths

    def chunks(epoch: int) -> Any:
        schedule = stream.schedule(epoch)
        skipped = offset if epoch == first_epoch else 0
        gone = set(stream.order(epoch)[:skipped].tolist())
        numbers = np.array([number for number, _ in schedule], np.int64)
        wanted = np.array([not gone.issuperset(i.tolist()) for _, i in schedule], np.bool_)
        sizes = np.array([len(i) for _, i in schedule], np.int64)
        return numbers, wanted, np.concatenate([i for _, i in schedule]), sizes

    @tf.autograph.experimental.do_not_convert
    def epoch_elements(epoch: Any) -> Any:
        with tf.name_scope("shuffle"):
            numbers, wanted, indices, sizes = tf.numpy_function(
                lambda e: chunks(int(e)), [epoch], (tf.int64, tf.bool, tf.int64, tf.int64)
            )
        for column in (numbers, wanted, indices, sizes):
            column.set_shape([None])
        rows = tf.RaggedTensor.from_row_lengths(indices, sizes, validate=False)
        read = tf.data.Dataset.from_tensor_slices((numbers, rows, wanted)).map(
            lambda number, row, want: read_chunk(number, row, want),
            num_parallel_calls=READERS if span.ahead else None,
            deterministic=True if span.ahead else None,
        )
        elements = (read.prefetch(READERS) if span.ahead else read).interleave(
            lambda content, i, at, size: tf.data.Dataset.zip(
                tf.data.Dataset.from_tensor_slices((i, at, size)),
                tf.data.Dataset.from_tensors(content).repeat(),
            ),
            cycle_length=stream.cycle,
            block_length=1,
        )
        skipped = tf.where(epoch == first_epoch, tf.constant(offset, tf.int64), 0)
        return elements.take(length).enumerate(start=epoch * length).skip(skipped)

    elements = tf.data.Dataset.range(first_epoch, span.last_epoch).flat_map(epoch_elements)
    if span.delivered:
        delivered = tf.constant(sorted(span.delivered), tf.int64)
        elements = elements.filter(lambda position, _: ~tf.reduce_any(position == delivered))

    def cut(position: Any, rest: Any) -> Any:
        (index, at, size), content = rest
        return position, index, tf.strings.substr(content, at, size)

    if span.ahead:
        return Source(elements, _the_value, cut)
    # Elements will be batched: then each must hold its image only, not all of its chunk.
    return Source(elements.map(cut), _the_value)


def _the_value(_: Any, value: Any) -> Any:
    return value
