"""The command line as a whole: help by purpose, examples, exit codes, no framework for reading."""

import io
import json
import subprocess
import sys

import click
import pytest
from rich.console import Console

from tests.cli.profiled_run import make_run
from timesink.cli import cli
from timesink.cli._progress import PlainLines, progress
from timesink.runs.journal import Journal


def verbs(group, path=()):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from verbs(command, (*path, name))
        else:
            yield (*path, name), command


@pytest.mark.parametrize("verb", list(verbs(cli)), ids=lambda verb: " ".join(verb[0]))
def test_every_verb_has_examples_in_its_help(verb):
    path, command = verb
    assert f"timesink {' '.join(path)}" in command.help.split("Examples:")[1]


def test_the_help_lists_every_verb_by_what_a_person_wants(timesink):
    text = timesink("--help").stdout
    assert text.index("Train and measure:") < text.index("Get images:")
    for path, _ in verbs(cli):
        assert f"  {' '.join(path)} " in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_wrong_verb_and_a_wrong_option_are_usage_errors(timesink):
    assert timesink("rnu").returncode == 2
    assert timesink("show").returncode == 2
    assert timesink("run", "--sett", "a=b").returncode == 2


def test_a_mistake_in_an_experiment_is_one_line_and_exit_code_2(timesink, tmp_path):
    (tmp_path / "mine.toml").write_text("[training]\nbach_size = 3\n")
    done = timesink("run", "mine.toml")
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("timesink: mine.toml: training.bach_size: unknown key; did you mean")
    assert not (tmp_path / "runs").exists()


def test_init_check_and_schema_agree(timesink, tmp_path):
    assert timesink("experiment", "init", "--set", "training.network=vgg11").returncode == 0
    checked = timesink("experiment", "check", "experiment.toml")
    assert checked.returncode == 0
    assert "vgg11" in checked.stdout
    again = timesink("experiment", "init")
    assert again.returncode == 2
    assert "--force" in again.stderr
    schema = json.loads(timesink("experiment", "schema").stdout)
    assert "training" in schema["properties"]


def test_a_wrong_stage_is_found_by_check(timesink, tmp_path):
    (tmp_path / "mine.toml").write_text('[pipeline]\nstages = ["decode", "resize"]\n')
    done = timesink("experiment", "check", "mine.toml")
    assert done.returncode == 2
    assert "convert is missing" in done.stderr


@pytest.mark.parametrize("verb", ["show", "collect", "compare", "report"])
def test_commands_that_read_import_no_framework(verb, tmp_path):
    make_run(tmp_path / "run", seed=1)
    runs = [str(tmp_path / "run")] * (2 if verb == "compare" else 1)
    script = f"""
import sys
sys.argv = ["timesink", "{verb}", *{runs}]
from timesink.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
assert not {{"tensorflow", "keras", "torch"}} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_show_prints_one_json_object_and_nothing_else(timesink, tmp_path):
    journal = Journal(tmp_path / "log.txt", 1, 0)
    journal.write("run", experiment={"name": "x", "training": {"network": "n"}}, machine={})
    done = timesink("show", ".", "--json")
    summary = json.loads(done.stdout)
    assert done.stderr == ""
    for key in [
        "schema_version",
        "network",
        "steps",
        "step_ms",
        "data_ms",
        "images_per_s",
        "loss",
        "top1",
        "explained",
        "layer_share",
        "percent_error",
        "slowdown",
        "verdict",
        "accounts",
        "run_accounts",
        "stages",
        "peak_memory_bytes",
        "retraces",
    ]:
        assert key in summary


def test_a_closed_pipe_is_no_error(tmp_path):
    journal = Journal(tmp_path / "log.txt", 1, 0)
    journal.write("run", experiment={"name": "x", "training": {"network": "n"}}, machine={})
    done = subprocess.run(
        f"{sys.executable} -m timesink show {tmp_path} --json | head -1",
        shell=True,
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr


def test_away_from_a_terminal_progress_is_plain_lines_with_rate_and_time_left():
    now = [0.0]
    text = io.StringIO()
    lines = PlainLines(Console(file=text, width=80), "Training", 10, "steps", lambda: now[0])
    for _ in range(8):
        now[0] += 1
        lines.advance(1)
    lines.finish()
    assert text.getvalue().splitlines() == [
        "Training: 5/10 steps, 1.0/s, 5 s left",
        "Training: 8/10 steps, 1.0/s, 2 s left",
    ]


def test_work_that_never_began_prints_no_line():
    text = io.StringIO()
    with pytest.raises(ValueError), progress(Console(file=text), "Making", 5, "images"):
        raise ValueError
    assert text.getvalue() == ""


def test_on_a_terminal_progress_is_a_bar():
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=80)
    with progress(console, "Training", 4, "steps") as advance:
        advance(3)
    assert "━" in text.getvalue()


def test_a_place_that_cannot_be_written_is_one_line(timesink, tmp_path):
    (tmp_path / "file").write_text("")
    done = timesink("experiment", "init", "file/mine.toml")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line == "timesink: file: File exists" or "Not a directory" in line
