"""`timesink show`: the ledger of a run's steps on a terminal of 80 columns."""

import json

import pytest

from tests.traced_run import write_run
from timesink.cli._ledger import Paper, bar_of, shortened


def lines_of(text: str, first_word: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip().startswith(first_word)]


@pytest.fixture
def shown(say, tmp_path):
    """Write a run with its tables, and show it."""

    def show(*options, **made):
        write_run(tmp_path / "run", **made).write_tables()
        done = say("show", "run", *options)
        assert done.code == 0, done.err
        assert max(map(len, done.out.splitlines())) <= 80
        return done.out

    return show


def test_layers_come_by_time_with_their_phases_and_share(shown):
    text = shown()
    assert "Where a step's 10.00 ms went  mean of 3 traced steps, CPU:0" in text
    assert lines_of(text, "conv1")[0][:6] == ["conv1", "≈", "3.00", "3.00", "0.20", "6.20"]
    assert lines_of(text, "fc1/dense")[0][:6] == ["fc1/dense", "≈", "1.00", "1.00", "0.05", "2.05"]
    assert text.index("conv1") < text.index("fc1/dense")


def test_estimated_layers_are_marked_and_explained(shown):
    text = shown()
    assert text.count("≈ from ops fused out of several layers") == 1


def test_the_other_accounts_stand_below_with_their_places(shown):
    text = shown(retraced=True)
    assert lines_of(text, "input_wait")[0][1:3] == ["1.00", "10.0%"]
    assert lines_of(text, "unattributed")[0][1:3] == ["0.00", "0.0%"]
    (place,) = lines_of(text, "tracing train_step")
    assert place[2] == "0.08"  # a quarter of a millisecond, in one of three steps
    assert lines_of(text, "between calls,")
    assert "retraced: train_step" in text


def test_closure_is_said_with_both_ways_to_count(shown):
    text = shown()
    assert "closed: 10.00 ms of 10.00 ms, unattributed 0.0 %; layers 82.5 % of the step" in text
    assert "summed op times 8.25 ms: percent error 17.5 % as the older program counts" in text


def test_slowdown_has_its_interval(shown):
    text = shown(steps=60, traced=range(20, 40))
    assert "slowdown: traced steps ×1.00 [1.00, 1.00], whole run ×1.00" in text


def test_an_unknown_slowdown_says_why(shown):
    assert "slowdown by tracing is unknown: " in shown(steps=6, traced=(2, 3, 4, 5, 6))


def test_retraces_that_the_journal_counts_are_said_with_their_function(say, tmp_path):
    run = write_run(tmp_path / "run")
    with run.log.open("a") as log:
        for iteration in (2, 3):
            fields = {"iteration": iteration, "function": "train_step", "inputs": ""}
            log.write(f"0.1 1 retrace {json.dumps(fields)}\n")
    run.write_tables()
    assert "retraced 2 times: train_step" in say("show", "run").out


def test_memory_and_what_to_look_at_first_are_said(shown):
    text = shown()
    assert "memory peak of a step 50 MiB (allocator cpu)" in text
    assert (
        "conv1 takes 62% of the step, the longest part forward" in text.partition("Look first:")[2]
    )


def test_fifteen_layers_are_shown_and_all_on_request(say, tmp_path):
    names = [f"layer_{chr(97 + number)}" for number in range(20)]
    run = write_run(tmp_path / "run", more=names)
    (run.path / "opmap.json").unlink()
    run.write_tables()
    text = say("show", "run").out
    assert lines_of(text, "…")[0][:4] == ["…", "8", "more", "layers"]
    every = say("show", "run", "--all").out
    assert "more layers" not in every
    assert all(name in every for name in names)
    assert "note: no map of ops (opmap.json): layers are told by names alone" in text


def test_groups_of_the_command_and_of_the_experiment_show_layers_as_one(shown):
    by_experiment = shown(groups={"all_of_it": ["conv1", "fc1/*"]})
    assert lines_of(by_experiment, "all_of_it")[0][5] == "8.25"
    assert not lines_of(by_experiment, "conv1 ")


def test_a_group_of_the_command_goes_before_the_experiments(shown):
    text = shown("--group", "mine=conv*", groups={"all_of_it": ["*"]})
    assert lines_of(text, "mine")[0][5] == "6.20"
    assert lines_of(text, "all_of_it")[0][5] == "2.05"


def test_a_depth_sums_what_is_inside_a_model(shown):
    assert lines_of(shown("--depth", "1"), "fc1 ")[0][5] == "2.05"


def test_the_ops_of_a_layer_are_read_from_the_trace(shown):
    text = shown("--ops", "conv1")
    assert "Ops of conv1" in text
    (forward,) = lines_of(text, "net/conv/Conv2D")
    assert forward[1:] == ["Conv2D", "forward", "3.000", "3.000", "30.0%"]
    assert lines_of(text, "sgd/Sub≈")
    assert "dense" not in text


def test_the_ops_of_a_group_are_those_of_its_layers(shown):
    text = shown("--ops", "mine", "--group", "mine=*dense")
    assert lines_of(text, "net/dense/MatMul")


def test_an_unknown_layer_names_the_one_that_is_meant(say, tmp_path):
    write_run(tmp_path / "run").write_tables()
    done = say("show", "run", "--ops", "conv")
    assert (done.code, done.out) == (2, "")
    assert done.err == "timesink: --ops conv: no layer of that name; did you mean conv1?\n"


def test_two_devices_are_shown_one_after_the_other_and_one_on_request(say, tmp_path):
    run = write_run(tmp_path / "run", replicas=2)
    (run.path / "opmap.json").unlink()
    run.write_tables()
    both = say("show", "run").out
    assert both.count("Where a step's") == 2
    one = say("show", "run", "--device", "CPU:1").out
    assert one.count("Where a step's") == 1
    assert "CPU:1" in one
    wrong = say("show", "run", "--device", "GPU:0")
    assert wrong.code == 2
    assert wrong.err.endswith("no such device; there are CPU:0, CPU:1\n")


def test_of_many_devices_the_first_is_shown_and_the_others_named(say, tmp_path):
    run = write_run(tmp_path / "run", replicas=3)
    (run.path / "opmap.json").unlink()
    run.write_tables()
    text = say("show", "run").out
    assert text.count("Where a step's") == 1
    assert "3 devices: --device shows another (CPU:1, CPU:2)" in text


def test_an_untraced_run_says_in_one_line_how_to_trace(shown):
    text = shown(traced=())
    (line,) = [line for line in text.splitlines() if "No step was traced" in line]
    assert "--set profile.mode=window" in line


def test_a_broken_trace_is_said_instead(say, tmp_path):
    run = write_run(tmp_path / "run")
    next(run.path.rglob("*.xplane.pb")).write_bytes(b"")
    run.write_tables()
    text = say("show", "run").out
    assert "note: " in text
    assert "No step was traced" not in text


def test_a_profiler_that_failed_is_said_instead(say, tmp_path):
    run = write_run(tmp_path / "run", traced=())
    with run.log.open("a") as log:
        log.write('0.1 1 profile_failed {"reason": "no room on the disk"}\n')
    run.write_tables()
    text = say("show", "run").out
    assert "no room on the disk" in text
    assert "No step was traced" not in text


def test_a_summary_from_before_there_were_ledgers_is_shown(say, tmp_path):
    run = write_run(tmp_path / "run", traced=())
    summary = run.write_tables()
    for key in ("traced", "traced_steps", "look_first", "notes", "memory", "retraced"):
        del summary[key]
    (run.path / "summary.json").write_text(json.dumps(summary))
    assert "No step was traced" in say("show", "run").out


def test_names_that_look_like_markup_are_shown_as_they_are(say, tmp_path):
    run = write_run(tmp_path / "run", layers=("[red]x[/red]", "[/bold]"))
    (run.path / "opmap.json").unlink()
    run.write_tables()
    text = say("show", "run").out
    assert "[/bold]" in text
    assert "[/bold]" in say("show", "run", "--ops", "[/bold]").out


def test_json_is_the_summary_and_no_option_changes_it(say, tmp_path):
    run = write_run(tmp_path / "run")
    run.write_tables()
    stored = json.loads((run.path / "summary.json").read_text())
    assert json.loads(say("show", "run", "--json").out) == stored
    assert json.loads(say("show", "run", "--json", "--depth", "1").out) == stored


@pytest.mark.parametrize("group", ["name", "=pattern", "name=", "name=,"])
def test_a_group_without_a_name_or_a_pattern_is_a_usage_error(say, tmp_path, group):
    done = say("show", ".", "--group", group)
    assert done.code == 2
    assert "NAME=PATTERN" in done.err


def test_long_names_are_cut_in_the_middle_and_bars_to_an_eighth():
    assert shortened("block_13_depthwise_BN", 10) == "blo…ise_BN"
    assert len(shortened("x" * 90, 26)) == 26
    assert shortened("short", 10) == "short"
    assert [bar_of(part, 2) for part in (0, 1 / 16, 0.5, 0.53125, 1)] == ["", "▏", "█", "█", "██"]


def test_times_stay_within_their_column_however_long():
    assert Paper(1, 1.0).ms(12_345.6) == "12,345.6"
    assert Paper(1, 1.0).ms(12_345_678.9) == "12345679"
