"""Shards that are done as an index, and an index as shards that are done."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from timesink.datasets.stores import contents
from timesink.datasets.stores.journal import Done
from timesink.datasets.stores.plan import Plan


def make_index(plan: Plan, shards: Sequence[Done], faults: dict[int, str]) -> pl.DataFrame:
    """Put every image of the dataset, in its order, into the index."""
    images = len(plan.names)
    number_of = np.array([i for done in shards for i in done.images], np.int64)
    columns = contents.COLUMNS | contents.KIND_COLUMNS[plan.kind]
    train = len(plan.dataset.train)
    known = pl.DataFrame(
        {
            "path": plan.names,
            "label": plan.labels,
            "split": [contents.TRAIN] * train + [contents.VALIDATION] * (images - train),
            "file_bytes": plan.file_bytes,
            "fault": [faults.get(i) for i in range(images)],
        },
        schema={name: columns[name] for name in ("path", "label", "split", "file_bytes", "fault")},
    )
    placed = {
        "record": np.arange(len(number_of)),
        "shard": np.repeat(np.arange(len(shards)), [len(done.images) for done in shards]),
        **{
            name: np.array([v for done in shards for v in done.columns[name]], np.int64)
            for name in ("offset", "bytes", *contents.KIND_COLUMNS[plan.kind])
        },
    }
    # Where each image's record stands among the records; the row after the last is empty.
    row = np.full(images, len(number_of), np.int64)
    row[number_of] = np.arange(len(number_of))
    return known.with_columns(
        pl.Series(name, values).cast(columns[name]).extend_constant(None, 1).gather(row)
        for name, values in placed.items()
    ).select(*columns)


def done_of(store: contents.StoreFiles, plan: Plan) -> list[Done]:
    """Read a whole store as the journal it was made by."""
    why = store.index["fault"].to_list()
    index = store.index.with_row_index("image")
    names = ("offset", "bytes", *contents.KIND_COLUMNS[store.manifest.kind])
    placed = index.filter(pl.col("record").is_not_null()).sort("record")
    groups = {int(key[0]): part for key, part in placed.partition_by("shard", as_dict=True).items()}
    empty = placed.clear()
    done = []
    for number, shard in enumerate(store.manifest.shards):
        part = groups.get(number, empty)
        columns = {name: part[name].to_list() for name in names}
        crc = int(shard.crc32c, 16)
        images = part["image"].to_list()
        bad = sorted(set(plan.shards[number].tolist()) - set(images))
        faults = [(image, str(why[image])) for image in bad]
        done.append(Done(number, shard.bytes, crc, images, columns, faults))
    return done
