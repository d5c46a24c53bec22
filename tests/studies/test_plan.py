"""A study's file: its parts, what --quick changes, what is refused, and the packaged ones."""

import pytest

from timesink.errors import ExperimentError
from timesink.pipelines.stages import parse_stages
from timesink.studies.plan import Measure, plan_of, read_parts, to_toml

FILE = """
name = "mine"
repetitions = 2
[training]
network = "alexnet"
[parts.quickly]
measure = { how = "pipeline", seconds = 5.0 }
training.batch_size = 4
[parts.quickly.grid]
pipeline.workers = [1, 4]
[parts.slowly]
repetitions = 1
training.network = "vgg11"
[parts.slowly.grid]
training.batch_size = [8, 16]
[quick]
pipeline.image_size = 64
[quick.parts.quickly]
measure.seconds = 1.0
[quick.parts.slowly.grid]
training.epochs = [1]
"""


def parts_of(tmp_path, text=FILE, **options):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return read_parts(path, "mine", **options)


def test_parts_have_what_stands_outside_of_them_and_their_own_on_top(tmp_path):
    quickly, slowly = parts_of(tmp_path)
    assert quickly.measure == Measure(how="pipeline", seconds=5.0)
    assert slowly.measure == Measure()
    planned = plan_of([quickly, slowly])
    found = [
        (each.number, each.part, each.repetition, each.experiment.training.network, each.name)
        for each in planned
    ]
    assert found == [
        (1, "quickly", 1, "alexnet", "quickly: workers 1"),
        (2, "quickly", 2, "alexnet", "quickly: workers 1, repetition 2"),
        (3, "quickly", 1, "alexnet", "quickly: workers 4"),
        (4, "quickly", 2, "alexnet", "quickly: workers 4, repetition 2"),
        (5, "slowly", 1, "vgg11", "slowly: batch_size 8"),
        (6, "slowly", 1, "vgg11", "slowly: batch_size 16"),
    ]
    assert {each.experiment.training.batch_size for each in planned[:4]} == {4}
    assert {each.experiment.repetitions for each in planned} == {1}


def test_quick_is_laid_over_the_rest_and_its_grids_take_the_place_of_whole_ones(tmp_path):
    quickly, slowly = parts_of(tmp_path, quick=True)
    assert quickly.measure == Measure(how="pipeline", seconds=1.0)
    assert quickly.grid.axes == {"pipeline.workers": (1, 4)}
    assert slowly.grid.axes == {"training.epochs": (1,)}
    assert {each.experiment.pipeline.image_size for each in plan_of([quickly, slowly])} == {64}
    assert parts_of(tmp_path)[1].grid.axes == {"training.batch_size": (8, 16)}


def test_parts_are_written_so_that_they_give_themselves_again(tmp_path):
    for quick in (False, True):
        parts = parts_of(tmp_path, quick=quick)
        assert plan_of(parts_of(tmp_path, to_toml(parts))) == plan_of(parts)
        parts = parts_of(tmp_path, quick=quick)


def test_a_file_without_parts_is_one(tmp_path):
    (part,) = parts_of(tmp_path, "[grid]\ntraining.batch_size = [1, 2]")
    assert (part.name, part.measure) == ("", Measure())
    assert [each.name for each in plan_of([part])] == ["batch_size 1", "batch_size 2"]
    assert to_toml([part]).startswith("[grid]")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("parts = 3", "parts: found 3, allowed: tables with names"),
        ("[parts]\na = 1", "parts: found {'a': 1}, allowed: tables with names"),
        ("[grid]\nseed = [1]\n[parts.a]\nseed = 1", "grid: a study with parts has its grids in"),
        ("[measure]\nhow = 'run2'", 'mine.toml: measure: how: found "run2", allowed: run, pipe'),
        ("[parts.a.measure]\nseconds = 0", "parts.a.measure: seconds: found 0"),
        ("[parts.a.measure]\nsecond = 1.0", "second: unknown key; did you mean seconds?"),
        ("[parts.a]\nmeasure = 3", "parts.a.measure: "),
        ("[parts.a.grid]\nseed = 3", "parts.a.grid.seed: found 3, allowed: a list"),
        ("[parts.a.training]\nepoch = 3", "training.epoch: unknown key; did you mean epochs?"),
    ],
)
def test_mistakes_name_the_part(tmp_path, text, words):
    with pytest.raises(ExperimentError) as raised:
        plan_of(parts_of(tmp_path, text))
    assert words in str(raised.value)
    assert "mine.toml" in str(raised.value)


def test_quick_needs_to_be_described(tmp_path):
    with pytest.raises(ExperimentError, match=r"mine.toml: --quick needs a \[quick\] table"):
        parts_of(tmp_path, "[grid]\nseed = [1]", quick=True)


@pytest.mark.parametrize("name", ["pipeline", "layers", "augmentation"])
@pytest.mark.parametrize("quick", [False, True])
def test_the_packaged_studies_can_be_planned(name, quick):
    planned = plan_of(read_parts(None, name, quick=quick))
    assert planned
    for each in planned:
        assert parse_stages(each.experiment.pipeline.stages)
        # A study keeps no networks: those of VGG alone would fill a disk.
        if each.measure.how == "run":
            assert each.experiment.training.checkpoint_keep == 0


def test_the_packaged_studies_are_of_the_seeds_sizes():
    pipeline = {each.part: each.experiment for each in plan_of(read_parts(None, "pipeline"))}
    assert {each.pipeline.image_size for each in pipeline.values()} == {200}
    assert {each.training.network for each in pipeline.values()} == {"resnet50"}
    assert pipeline["accuracy"].training.epochs == 30
    assert pipeline["workers"].pipeline.cache == pipeline["sources"].pipeline.cache == "cold"
    layers = plan_of(read_parts(None, "layers"))
    for quick in (False, True):
        layers = plan_of(read_parts(None, "layers", quick=quick))
        settings = {
            (each.part, each.experiment.training.network, each.experiment.training.batch_size)
            for each in layers
        }
        assert settings == {
            ("profiling", "alexnet", 64),
            ("profiling", "vgg11", 12),
            ("layers", "alexnet", 64),
            ("layers", "alexnet", 128),
            ("layers", "vgg11", 12),
        }
        replicas = {each.experiment.training.replicas for each in layers if each.part == "layers"}
        assert replicas == {2}
