"""Seed 000's figures: what they say follows from the measurements, and from nothing else."""

import pytest

from tests.studies.measurements import measured, pipeline, steps, summary
from timesink.studies.pipeline import figures

BATCHES = """
repetitions = 2
[parts.{part}]
measure = {{ how = "pipeline" }}
pipeline.mode = "by_batch"
pipeline.cache = "cold"
[parts.{part}.grid]
{axis}
training.batch_size = [16, 64]
"""


def figure(found, number):
    (one,) = [each for each in figures(found) if each.number == number]
    return one


def modes(place, waiting, *, computing=100.0):
    """Runs in each mode, whose steps wait so long; the first step compiles."""

    def write(each, folder):
        data_ms = waiting[each.experiment.pipeline.mode] + each.repetition
        rows = [{"data_ms": data_ms, "compute_ms": 5000.0}]
        rows += [{"data_ms": data_ms, "compute_ms": computing}] * 3
        steps(folder, rows)
        summary(folder)

    text = """
    [parts.overlap]
    repetitions = 2
    [parts.overlap.grid]
    pipeline.mode = ["pipelined", "by_batch", "whole_dataset"]
    """
    return measured(place, text, write)


def test_overlapping_is_what_shortens_a_step(tmp_path):
    found = figure(modes(tmp_path, {"pipelined": 1, "by_batch": 40, "whole_dataset": 50}), "Fig. 2")
    assert found.agreement == "agrees"
    assert "102.5 ms pipelined" in found.here
    assert "151.5 ms where all of an epoch is made first" in found.here
    assert "141.5 ms where each batch is made when it is needed" in found.here
    assert "share the cores" not in found.here
    parts = {(row["mode"], row["part"]): row["ms"] for row in found.rows}
    assert parts["pipelined", "waiting for images"] == 2.5
    assert parts["pipelined", "computing"] == 100.0  # not the step that compiled


def test_no_gain_from_overlapping_is_said(tmp_path):
    found = figure(
        modes(tmp_path, {"pipelined": 40, "by_batch": 40, "whole_dataset": 40}), "Fig. 2"
    )
    assert found.agreement == "undecided"
    assert "In 2 of 2 comparisons the noise is larger" in found.here
    assert "share the cores here" in found.here  # no GPU


def accuracies(place, curves, failed=lambda _each: None):
    def write(each, folder):
        curve = curves[each.experiment.training.batch_size]
        steps(
            folder,
            [
                {"epoch": epoch, "top1": share, "data_ms": 1.0, "compute_ms": 1.0, "images": images}
                for epoch, share in enumerate(curve, 1)
                # A last batch of fewer images counts for less.
                for share, images in ((share, 8), (1.0, 0))
            ],
        )

    sizes = ", ".join(map(str, [*curves, 320]))
    text = f"[parts.accuracy.grid]\ntraining.batch_size = [{sizes}]\n"
    return measured(
        place,
        text,
        write,
        lambda each: "out of memory" if each.experiment.training.batch_size == 320 else None,
    )


def test_epochs_to_an_accuracy_that_all_reached_are_compared(tmp_path):
    curves = {8: [0.2, 0.4, 0.6, 0.7], 64: [0.5, 0.7, 0.8, 0.95]}
    found = figure(accuracies(tmp_path, curves), "Fig. 18")
    assert found.here.startswith("70 % was reached by batch 8 after 4, batch 64 after 2 epochs.")
    assert "Batches of 320 did not fit into memory." in found.here
    assert found.agreement == "undecided"  # one run of each
    assert "Measured once" in found.note
    drawn = [(row["batch_size"], row["epoch"], row["accuracy"]) for row in found.rows]
    assert drawn[:4] == [("8", 1, 20.0), ("8", 2, 40.0), ("8", 3, 60.0), ("8", 4, 70.0)]


def test_several_sizes_of_batches_decide_together(tmp_path):
    slow, quick = [0.5, 0.6, 0.92], [0.95, 0.95, 0.95]
    small, large = (8, 16, 32), (64, 128, 160)
    curves = {**dict.fromkeys(small, slow), **dict.fromkeys(large, quick)}
    assert figure(accuracies(tmp_path, curves), "Fig. 18").agreement == "agrees"
    curves |= {32: quick, 64: slow}
    assert figure(accuracies(tmp_path, curves), "Fig. 18").agreement == "undecided"


def test_smaller_batches_that_learn_sooner_differ_from_the_seed(tmp_path):
    quick = [0.95, 0.95]
    curves = {8: quick, 16: quick, 32: quick, 64: [0.5, 0.92], 128: [0.4, 0.91], 160: [0.3, 0.93]}
    found = figure(accuracies(tmp_path, curves), "Fig. 18")
    assert "batch 8 after 1, batch 16 after 1, batch 32 after 1, batch 64 after 2" in found.here
    assert found.agreement == "differs"


def workers(place, ms):
    def write(each, folder):
        experiment = each.experiment
        key = experiment.training.batch_size, experiment.pipeline.workers
        cache = {"resident_bytes": 0, "total_bytes": 100}
        pipeline(folder, mean=ms[key] + each.repetition, cache_before=cache)

    text = BATCHES.format(part="workers", axis='pipeline.workers = [1, 4, "auto"]')
    return measured(place, text, write)


def test_more_workers_are_compared_with_few_at_every_batch_size(tmp_path):
    ms = {(16, 1): 20, (16, 4): 12, (16, "auto"): 10}
    ms |= {(64, 1): 80, (64, 4): 42, (64, "auto"): 40}
    found = figure(workers(tmp_path, ms), "Fig. 19")
    assert found.agreement == "agrees"
    assert "0.53 times as long with auto workers as with 1 at batch 16" in found.here
    assert "0.51 times as long with auto workers as with 1 at batch 64" in found.here
    assert "4.00 times the images, its time is 3.79 times as long" in found.here
    assert "before each measurement 0 % of the files was in memory" in found.note
    first = found.rows[0]
    assert first == {"batch_size": 16, "workers": "1", "ms": 21.5, "low": 21.0, "high": 22.0}


def test_workers_that_gain_nothing_are_noise(tmp_path):
    ms = dict.fromkeys([(b, w) for b in (16, 64) for w in (1, 4, "auto")], 20)
    assert figure(workers(tmp_path, ms), "Fig. 19").agreement == "undecided"


def by_stage(place, *, cpu=True, decode=0.6, batch=0.1):
    def write(each, folder):
        stages = [
            ("read", "stage", 0.2, 0.1),
            ("decode", "stage", 0.5, decode),
            ("resize", "stage", 0.2, 0.2),
            ("batch", "stage", 0.05, batch),
            ("executor", "framework", 0.05, None),
        ]
        pipeline(folder, stages=[row if cpu else (*row[:3], None) for row in stages])

    text = '[parts.stages]\nmeasure = { how = "pipeline", stages = true }\n'
    return measured(place, text, write)


def test_shares_are_of_the_cpu_time_of_the_stages(tmp_path):
    found = figure(by_stage(tmp_path), "Fig. 20")
    assert "Preprocessing takes 80 % of the pipeline's CPU time, decode alone 60 %" in found.here
    assert "reading takes 10 %" in found.here
    assert [row["stage"] for row in found.rows] == ["read", "decode", "resize", "batch"]
    assert found.agreement == "differs"  # the seed's is half


def test_half_of_the_time_and_a_fifth_are_what_the_seed_found(tmp_path):
    found = figure(by_stage(tmp_path, decode=0.3, batch=0.4), "Fig. 20")
    assert "Preprocessing takes 50 % of the pipeline's CPU time" in found.here
    assert found.agreement == "agrees"


def test_without_cpu_time_the_work_of_the_threads_stands_for_it(tmp_path):
    found = figure(by_stage(tmp_path, cpu=False), "Fig. 20")
    assert "Preprocessing takes 70 % of the pipeline's work" in found.here


@pytest.mark.parametrize(
    ("number", "source", "ms", "agreement"),
    [
        ("Fig. 21", "tfrecord", 20, "agrees"),
        ("Fig. 21", "tfrecord", 60, "differs"),
        ("Fig. 22", "materialized", 10, "agrees"),
        ("Fig. 22", "materialized", 40, "undecided"),
    ],
)
def test_sources_are_compared_with_raw_files(tmp_path, number, source, ms, agreement):
    def write(each, folder):
        mine = each.experiment.pipeline.source
        pipeline(folder, mean=(40 if mine == "raw" else ms) + each.repetition)

    axis = 'pipeline.source = ["tfrecord", "materialized", "raw"]'
    found = figure(measured(tmp_path, BATCHES.format(part="sources", axis=axis), write), number)
    assert found.agreement == agreement
    assert f"{(ms + 1.5) / 41.5:.2f} times as long at batch 16" in found.here
    assert [row["source"] for row in found.rows] == ["raw", "raw", source, source] or [
        row["source"] for row in found.rows
    ] == ["raw", source, "raw", source]


def test_what_was_not_measured_is_said_of_every_figure(tmp_path):
    found = figures(measured(tmp_path, "[parts.other]\nseed = 1\n", lambda *_: None))
    numbers = ["Fig. 2", "Fig. 18", "Fig. 19", "Fig. 20", "Fig. 21", "Fig. 22"]
    assert [each.number for each in found] == numbers
    assert {each.agreement for each in found} == {"not measured"}
    assert not any(each.rows for each in found)
