"""What to look at first: a step's accounts in, one to three sentences out, the largest first."""

import polars as pl

from timesink.ledger.opmap import LAYER

WORTH_A_SENTENCE = 0.05
"""Of the step; what is smaller is not where the time goes."""
MOST = 3

HINTS = {
    "input_wait": "the step waits for its images: look at the input pipeline",
    "collective": "replicas wait for each other's gradients: larger batches a replica, or fewer",
    "host_to_device": "images are copied while the device waits: prefetch to the device",
    "device_to_host": "results are copied while the device waits: read them less often",
    "loss": "losses and metrics are computed every step: fewer metrics, or less often",
    "runtime": "the framework is busy between ops: a larger batch, or XLA, makes fewer of them",
    "idle": "the host was blocked on something that is none of these",
    "unattributed": "no event says what happened there",
}


def first_look(means: pl.DataFrame) -> list[str]:
    """Say where most of the step goes; `means` has account, layer, phase, place and share."""
    devices = max(means["device"].n_unique(), 1)
    means = means.with_columns(pl.col("share") / devices)
    sentences: list[tuple[float, str]] = []
    for account, hint in HINTS.items():
        share = float(means.filter(pl.col("account") == account)["share"].sum())
        sentences.append((share, f"{account} takes {share:.0%} of the step: {hint}"))
    places = means.filter(pl.col("account") == "python").group_by("place").agg(pl.sum("share"))
    for place, share in places.iter_rows():
        where = place or "between calls, too short to be seen"
        sentences.append((share, f"python takes {share:.0%} of the step: {where}"))
    layers = means.filter(pl.col("account") == LAYER)
    for layer, share, phase, part in (
        layers.filter(pl.col("layer").is_not_null())
        .group_by("layer", "phase")
        .agg(pl.sum("share"))
        .sort("share", "phase")
        .group_by("layer", maintain_order=True)
        .agg(pl.sum("share"), pl.last("phase"), pl.last("share").alias("part"))
        .iter_rows()
    ):
        which = f"most of it {phase}" if part > share / 2 else f"the longest part {phase}"
        sentences.append((share, f"{layer} takes {share:.0%} of the step, {which}"))
    worth = [(share, text) for share, text in sentences if share >= WORTH_A_SENTENCE]
    return [text for _, text in sorted(worth, reverse=True)[:MOST]]
