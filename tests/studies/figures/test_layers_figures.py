"""Seed 001's figures: what profiling costs, layers by iteration, and the error that it found."""

import pytest

from tests.studies.measurements import layers, measured, steps, summary
from timesink.studies.figures.layer_cases import CASES
from timesink.studies.figures.seed_figure import told_apart
from timesink.studies.layers import figures

ORDER = ("conv1", "conv2", "conv3", "conv4", "conv5", "fc1", "fc2", "output")


def figure(found, number):
    (one,) = [each for each in figures(found) if each.number == number]
    return one


def profiled(place, seconds):
    def write(each, folder):
        mode = each.experiment.profile.mode
        accounts = [
            {"account": "startup", "s": 50.0},
            {"account": "steps", "s": seconds[mode] + 0.1 * each.repetition},
            {"account": "profile", "s": 0.0 if mode == "off" else 1.0},
        ]
        summary(folder, run_accounts=accounts)
        return 60.0 + seconds[mode]

    text = """
    [parts.profiling]
    repetitions = 2
    training.network = "alexnet"
    [parts.profiling.grid]
    profile.mode = ["off", "window", "every"]
    """
    return measured(place, text, write)


@pytest.mark.parametrize(
    ("every", "agreement", "words"),
    [(10.0, "differs", "every step +10 %"), (33.0, "agrees", "every step +236 %")],
)
def test_profiling_is_compared_with_none_over_all_steps(tmp_path, every, agreement, words):
    found = figure(profiled(tmp_path, {"off": 10.0, "window": 9.0, "every": every}), "Fig. 4-1")
    assert found.agreement == agreement
    assert "a window of steps ±0 % (within the noise)" in found.here
    assert words in found.here
    assert "The whole command, reading the traces included" in found.here
    assert [row["profiling"] for row in found.rows] == [
        "no profiling",
        "a window of steps",
        "every step",
    ]
    assert found.rows[0]["s"] == 10.15


def by_layer(place, medians, *, forward=0.4, devices=("CPU:0", "CPU:1"), second=1.0, step_ms=200.0):
    """A run of AlexNet whose layers take so long; the first iteration is not traced."""

    def write(each, folder):
        rows = []
        for iteration in range(2, 12):
            for number, device in enumerate(devices):
                for layer, ms in medians.items():
                    mine = ms * (second if number else 1.0)
                    rows += [
                        (iteration, device, layer, "forward", forward * mine),
                        (iteration, device, layer, "backward", (1 - forward) * mine),
                        (iteration, device, layer, "update", 1.0),
                    ]
                rows.append((iteration, device, "pool1", "forward", 3.0))
        layers(folder, rows)
        steps(folder, [{"step_ms": step_ms} for _ in range(11)])
        summary(folder, percent_unexplained=0.0, layer_share=0.9)

    text = """
    [parts.layers]
    training.network = "alexnet"
    training.batch_size = 64
    profile.mode = "every"
    """
    return measured(place, text, write)


AS_THE_SEED = {layer: 20.0 - 2 * place for place, layer in enumerate(ORDER)}


def test_layers_by_iteration_are_forward_and_backward_of_those_that_train(tmp_path):
    found = figure(by_layer(tmp_path, AS_THE_SEED), "Fig. 4-4")
    assert found.agreement == "agrees"
    assert found.here.startswith("Longest first: conv1 20.0 ms, conv2 18.0 ms, conv3 16.0 ms")
    assert "correlate by 1.00" in found.here
    assert list(dict.fromkeys(row["layer"] for row in found.rows)) == list(ORDER)
    first = [row for row in found.rows if row["layer"] == "conv1"]
    assert [row["iteration"] for row in first] == list(range(2, 12))
    assert {row["ms"] for row in first} == {20.0}


def test_another_order_of_layers_differs(tmp_path):
    backwards = dict(zip(reversed(ORDER), AS_THE_SEED.values(), strict=True))
    found = figure(by_layer(tmp_path, backwards), "Fig. 4-4")
    assert found.agreement == "differs"
    assert "correlate by -1.00" in found.here


@pytest.mark.parametrize(
    ("second", "agreement", "words"), [(1.05, "agrees", "is 5 %"), (1.5, "differs", "is 50 %")]
)
def test_the_second_device_is_compared_with_the_first(tmp_path, second, agreement, words):
    found = figure(by_layer(tmp_path, AS_THE_SEED, second=second), "Fig. 4-3")
    assert found.agreement == agreement
    assert words in found.here


@pytest.mark.parametrize(
    ("forward", "agreement"), [(0.4, "agrees"), (0.6, "differs"), (0.5, "differs")]
)
def test_forward_is_compared_with_backward_in_every_iteration(tmp_path, forward, agreement):
    found = figure(by_layer(tmp_path, AS_THE_SEED, forward=forward), "Fig. 4-5")
    assert "conv1 by iteration" in found.title
    assert found.agreement == agreement
    assert f"Forward takes {20 * forward:.2f} ms, backward {20 - 20 * forward:.2f} ms" in found.here
    assert {row["phase"] for row in found.rows} == {"forward", "backward"}


def test_the_seed_s_error_and_the_closed_ledger_stand_beside_each_other(tmp_path):
    found = by_layer(tmp_path, AS_THE_SEED)
    error = figure(found, "Fig. 4-13")
    # 104 ms of layers, 8 of updates and 3 of the pool, of 200: 42.5 % is left.
    assert "between 42 and 42 %" in error.here
    assert error.agreement == "differs"
    assert "0.00 % is unexplained" in error.here
    assert {row["error"] for row in error.rows} == {42.5}
    total = figure(found, "Fig. 4-14")
    times = {row["time"]: row["ms"] for row in total.rows}
    assert times == {"the iteration": 200.0, "its layers’ ops": 115.0}


def test_an_error_as_the_seed_s_agrees(tmp_path):
    error = figure(by_layer(tmp_path, AS_THE_SEED, step_ms=230.0), "Fig. 4-13")
    assert error.agreement == "agrees"


def test_ops_that_run_at_once_make_the_seed_s_error_negative(tmp_path):
    error = figure(by_layer(tmp_path, AS_THE_SEED, step_ms=100.0), "Fig. 4-13")
    assert "below zero, because ops of several layers run at once" in error.here


def test_every_figure_of_the_seed_has_a_line_whether_measured_or_not(tmp_path):
    found = figures(by_layer(tmp_path, AS_THE_SEED, devices=("CPU:0",)))
    numbers = [each.number for each in found]
    asked = ["Fig. 4-1", "Fig. 4-2"]
    for case in CASES.values():
        asked += [*case.devices, *case.layers.values(), case.total, case.error]
    assert sorted(numbers) == sorted(asked)
    assert len(numbers) == 41
    missing = {each.number for each in found if each.agreement == "not measured"}
    assert "Fig. 4-3" in missing  # there was no second device
    assert "Fig. 4-29" in missing
    assert "Fig. 4-4" not in missing


def test_a_run_that_traced_nothing_is_not_measured(tmp_path):
    found = measured(
        tmp_path,
        '[parts.layers]\ntraining.network = "vgg11"\ntraining.batch_size = 12',
        lambda _each, folder: summary(folder),
    )
    assert figure(found, "Fig. 4-29").agreement == "not measured"


def test_a_network_that_the_seed_did_not_have_gets_figures_like_its_own(tmp_path):
    def write(_each, folder):
        layers(folder, [(2, "CPU:0", "mine", phase, 1.0) for phase in ("forward", "update")])
        steps(folder, [{"step_ms": 2.0}, {"step_ms": 2.0}])
        summary(folder, percent_unexplained=0.0, layer_share=0.9)

    text = '[parts.layers]\ntraining.network = "my:net"\ntraining.batch_size = 4'
    found = [each for each in figures(measured(tmp_path, text, write)) if "my:net" in each.title]
    assert {each.number for each in found} >= {"like Fig. 4-4", "like Fig. 4-5", "like Fig. 4-13"}
    assert all("/" not in each.name and ":" not in each.name for each in found)


def test_layers_of_like_names_have_figures_of_their_own(tmp_path):
    def write(_each, folder):
        rows = [
            (2, "CPU:0", layer, phase, 1.0)
            for layer in ("a.1", "a-1")
            for phase in ("forward", "backward", "update")
        ]
        layers(folder, rows)
        steps(folder, [{"step_ms": 9.0}, {"step_ms": 9.0}])
        summary(folder, percent_unexplained=0.0, layer_share=0.9)

    text = '[parts.layers]\ntraining.network = "my:net"\ntraining.batch_size = 4'
    made = [each for each in figures(measured(tmp_path, text, write)) if "my:net" in each.title]
    assert len({each.name for each in made}) == len(made) - 1
    assert len({each.name for each in told_apart(made)}) == len(made)


def test_the_layer_that_the_seed_saw_overlap_is_that_of_one_experiment_alone():
    found = [case.output_words for case in CASES.values()]
    assert "overlap" in found[0] and not found[1] and "hardly" in found[2]


@pytest.mark.parametrize(
    ("shorter", "agreement"), [(10, "agrees"), (8, "undecided"), (1, "differs")]
)
def test_one_phase_is_the_longer_where_chance_would_hardly_show_it(tmp_path, shorter, agreement):
    def write(_each, folder):
        rows = [
            (n, "CPU:0", "conv1", phase, 1.0 if (phase == "forward") == (n <= shorter) else 2.0)
            for n in range(1, 12)
            for phase in ("forward", "backward", "update")
        ]
        layers(folder, rows)
        steps(folder, [{"step_ms": 9.0} for _ in range(11)])
        summary(folder, percent_unexplained=0.0, layer_share=0.9)

    text = '[parts.layers]\ntraining.network = "alexnet"\ntraining.batch_size = 64'
    found = figure(measured(tmp_path, text, write), "Fig. 4-5")
    assert f"forward was the shorter in {shorter} of 11 iterations" in found.here
    assert found.agreement == agreement
