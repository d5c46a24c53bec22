"""Several devices: two replicas give the losses of one, where the docs say that they do."""

import json

import pytest

from tests.runs.conftest import losses

WITHOUT_DROPOUT = ("training.deterministic=true", "training.iterations=8")


def network(workplace, *, dropout):
    text = (workplace / "tiny.py").read_text()
    (workplace / "tiny.py").write_text(text.replace("Dropout(0.2)", f"Dropout({dropout})"))


def test_two_replicas_give_the_losses_of_one_with_synchronized_batch_norm(run, workplace):
    network(workplace, dropout=0.0)
    settings = (*WITHOUT_DROPOUT, "training.synchronized_batch_norm=true")
    assert run(*settings, out="one").returncode == 0
    two = run(*settings, "training.replicas=2", out="two")
    assert two.returncode == 0, two.stderr
    assert losses(workplace / "two") == pytest.approx(losses(workplace / "one"), rel=1e-4)
    summary = json.loads((workplace / "two" / "summary.json").read_text())
    assert summary["devices"] == ["CPU:0", "CPU:1"]
    assert summary["images_per_s"] > 0


def test_plain_batch_norm_sees_a_replicas_images_only(run, workplace):
    network(workplace, dropout=0.0)
    assert run(*WITHOUT_DROPOUT, out="one").returncode == 0
    assert run(*WITHOUT_DROPOUT, "training.replicas=2", out="two").returncode == 0
    assert losses(workplace / "two") != pytest.approx(losses(workplace / "one"), rel=1e-4)


def test_weight_decay_does_not_grow_with_the_replicas(run, workplace):
    network(workplace, dropout=0.0)
    settings = (
        *WITHOUT_DROPOUT,
        "training.synchronized_batch_norm=true",
        "training.weight_decay=0.5",
    )
    assert run(*settings, out="one").returncode == 0
    assert run(*settings, "training.replicas=2", out="two").returncode == 0
    assert losses(workplace / "two") == pytest.approx(losses(workplace / "one"), rel=1e-4)


def test_a_resumed_run_with_two_replicas_and_dropout_goes_on_where_it_was(run, workplace, timesink):
    settings = ("training.replicas=2", "training.iterations=10", "training.checkpoint_every=4")
    assert run(*settings, out="whole").returncode == 0
    # As if it had been killed at iteration 6: only the first checkpoint and the log are there.
    out = workplace / "cut"
    out.mkdir()
    whole = workplace / "whole"
    for name in ("experiment.toml", "machine.json"):
        (out / name).write_bytes((whole / name).read_bytes())
    lines = (whole / "log.txt").read_text().splitlines(keepends=True)
    last = next(i for i, line in enumerate(lines) if '"iteration": 6,' in line)
    (out / "log.txt").write_text("".join(lines[: last + 1]))
    (out / "checkpoints").mkdir()
    (whole / "checkpoints" / "00000004").rename(out / "checkpoints" / "00000004")
    assert timesink("run", "--resume", "cut", cwd=workplace).returncode == 0
    assert losses(out) == losses(whole)
    assert set(losses(out, process=2)) == set(range(5, 11))


def test_xla_with_several_replicas_is_refused(run):
    done = run("training.replicas=2", "training.xla=true")
    assert done.returncode == 2
    assert "training.xla" in done.stderr
