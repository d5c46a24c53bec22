"""A study's file: what is varied, crossed, set from outside, refused."""

import tomllib

import pytest

from timesink import machine
from timesink.errors import ExperimentError
from timesink.pipelines.stages import parse_stages
from timesink.studies.augmentation import AXES
from timesink.studies.grid import changed, on_all_cores, quarters
from timesink.studies.plan import Measure, Part, read_parts, to_toml

FILE = """
name = "mine"
[pipeline]
image_size = 32
[grid]
"training.network" = ["alexnet", "resnet50"]
pipeline.stages = ["basic", "basic+randaugment(2)"]
machine.cores = [1]
"""


def grid_of(tmp_path, text=FILE):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    (part,) = read_parts(path, "augmentation", allowed=AXES)
    return part.grid


def written(grid):
    return to_toml([Part("", Measure(), grid)])


def described(grid):
    return [
        (cell.training.network, cell.pipeline.stages, cell.machine.cores) for cell in grid.cells()
    ]


def test_every_value_is_crossed_with_all_others(tmp_path):
    assert described(grid_of(tmp_path)) == [
        ("alexnet", "basic", 1),
        ("alexnet", "basic+randaugment(2)", 1),
        ("resnet50", "basic", 1),
        ("resnet50", "basic+randaugment(2)", 1),
    ]
    assert all(cell.pipeline.image_size == 32 for cell in grid_of(tmp_path).cells())


def test_axes_and_settings_from_outside_take_the_place_of_the_file_s(tmp_path):
    grid = changed(
        grid_of(tmp_path),
        ["training.network=vgg11", "pipeline.image_size=48"],
        {"pipeline.stages": ("basic",), "training.batch_size": (8, 16), "machine.cores": ()},
    )
    cells = grid.cells()
    assert [cell.training.batch_size for cell in cells] == [8, 16]
    assert {cell.training.network for cell in cells} == {"vgg11"}
    assert {cell.pipeline.image_size for cell in cells} == {48}


def test_cores_that_nobody_says_are_the_machine_s(tmp_path):
    without = FILE.replace("machine.cores = [1]", "")
    grid = on_all_cores(changed(grid_of(tmp_path, without), [], {}))
    assert grid.axes["machine.cores"] == quarters(machine.cores())
    said = on_all_cores(changed(grid_of(tmp_path, without), ["machine.cores=1"], {}))
    assert {cell.machine.cores for cell in said.cells()} == {1}


def test_zipped_keys_go_through_their_values_together(tmp_path):
    text = """
    [grid]
    machine.cores = [1, 2]
    [grid.zipped]
    training.network = ["alexnet", "resnet50"]
    pipeline.image_size = [224, 96]
    """
    cells = grid_of(tmp_path, text).cells()
    found = [(c.machine.cores, c.training.network, c.pipeline.image_size) for c in cells]
    assert found == [
        (1, "alexnet", 224),
        (1, "resnet50", 96),
        (2, "alexnet", 224),
        (2, "resnet50", 96),
    ]
    grid = grid_of(tmp_path, text)
    assert grid_of(tmp_path, written(grid)).values() == grid.values()


@pytest.mark.parametrize(
    ("asked", "made"),
    [
        ("{ from = 1, to = 8, times = 2 }", (1, 2, 4, 8)),
        ("{ from = 2, to = 9, step = 3 }", (2, 5, 8)),
        ("{ from = 4, to = 4, step = 1 }", (4,)),
    ],
)
def test_a_range_stands_for_its_numbers(tmp_path, asked, made):
    grid = grid_of(tmp_path, f"[grid]\ntraining.batch_size = {asked}")
    assert grid.axes["training.batch_size"] == made


@pytest.mark.parametrize(
    ("cores", "found"), [(1, (1,)), (2, (1, 2)), (4, (1, 2, 3, 4)), (8, (2, 4, 6, 8))]
)
def test_quarters_of_eight_cores_are_the_study_s(cores, found):
    assert quarters(cores) == found


def test_the_packaged_study_is_the_seed_s():
    (part,) = read_parts(None, "augmentation")
    grid = changed(part.grid, [], {"machine.cores": (1,)})
    assert grid.axes["training.network"] == ("mobilenetv2", "resnet50")
    assert {cell.training.batch_size for cell in grid.cells()} == {64}
    assert {cell.pipeline.image_size for cell in grid.cells()} == {224}
    synthetic, basic, *others = grid.cells()[: len(grid.axes["pipeline.stages"])]
    assert synthetic.pipeline.source == "synthetic"
    assert {cell.pipeline.source for cell in (basic, *others)} == {"raw"}
    assert basic.pipeline.stages == "basic"
    layers = [parse_stages(cell.pipeline.stages)[3].arguments[0] for cell in others]
    assert layers == [1, 2, 4, 8]


def test_a_grid_is_written_so_that_it_gives_itself_again(tmp_path):
    grid = changed(grid_of(tmp_path), ["seed=5"], {})
    text = written(grid)
    assert tomllib.loads(text)["seed"] == 5
    again = grid_of(tmp_path, text)
    assert again.axes == grid.axes
    assert again.cells() == grid.cells()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[grid]\ntraining.momentum = [0.1]", "grid: found training.momentum, allowed: training.n"),
        ("[grid]\ntraining.network = 'alexnet'", "grid.training.network: found 'alexnet', allowed"),
        ("[grid]\ntraining.network = []", "grid.training.network: found [], allowed: a list"),
        ("[grid]\ntraining.batch_size = {from = 4, to = 1, step = 1}", "allowed: from ≤ to"),
        ("[grid]\ntraining.batch_size = {from = 0, to = 4, times = 2}", "allowed: from ≤ to"),
        ("[grid]\ntraining.batch_size = {from = 1, to = 4}", "allowed: from ≤ to"),
        (
            "[grid.zipped]\ntraining.network = ['alexnet']\ntraining.batch_size = [1, 2]",
            "grid.zipped: found 1 of training.network, 2 of training.batch_size",
        ),
        (
            "[grid]\ntraining.batch_size = [1]\n[grid.zipped]\ntraining.batch_size = [1]",
            "found training.batch_size twice",
        ),
        ("grid = 3", "grid: found 3, allowed: a table of lists"),
        ("[grid", "not TOML"),
        ("[grid]\ntraining.batch_size = ['x']", 'training.batch_size: found "x", allowed'),
        ("nonsense = 1", "nonsense: unknown key"),
    ],
)
def test_mistakes_are_one_line_that_names_the_file(tmp_path, text, words):
    with pytest.raises(ExperimentError) as raised:
        changed(grid_of(tmp_path, text), [], {"machine.cores": (1,)}).cells()
    assert words in str(raised.value)
    assert "mine.toml" in str(raised.value)


def test_a_grid_that_nobody_could_wait_for_is_refused(tmp_path):
    many = FILE.replace("[1]", str(list(range(1, 5000))))
    with pytest.raises(ExperimentError, match="found 19,996 cells, allowed: 10,000"):
        grid_of(tmp_path, many).cells()


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(ExperimentError, match="cannot be read: No such file"):
        read_parts(tmp_path / "none.toml", "augmentation")
