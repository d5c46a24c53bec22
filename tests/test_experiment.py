"""Experiments: defaults, TOML, --set, and one clear line for each mistake."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timesink.errors import ExperimentError
from timesink.experiment import Experiment, load, parse
from timesink.experiment_toml import to_toml


def mistake(tmp_path: Path, text: str, *settings: str) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ExperimentError) as raised:
        load(path, settings)
    assert raised.value.exit_code == 2
    return str(raised.value)


def test_nothing_at_all_is_a_complete_experiment():
    asked = load(None)
    assert asked.training.network == "mobilenetv2"
    assert asked.pipeline.workers == "auto"


def test_a_setting_overrides_the_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[training]\nbatch_size = 16\nepochs = 7\n")
    asked = load(path, ["training.batch_size=64"])
    assert (asked.training.batch_size, asked.training.epochs) == (64, 7)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("name=123", "123"),
        ("name='quoted'", "quoted"),
    ],
)
def test_a_text_key_takes_the_setting_as_it_is(setting, value):
    assert load(None, [setting]).name == value


def test_a_setting_without_a_value_forgets_the_key(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[dataset]\npath = "here"\nremote = "sftp://host/there"\n')
    dataset = load(path, ["dataset.remote="]).dataset
    assert (dataset.path, dataset.remote) == ("here", None)
    assert load(None, ["training.iterations="]).training.iterations is None


def test_an_unknown_key_cannot_be_forgotten(tmp_path):
    assert "unknown key" in mistake(tmp_path, "", "dataset.remot=")


def test_a_setting_can_be_a_list():
    assert load(None, ['dataset.classes=["cat", "dog"]']).dataset.classes == ["cat", "dog"]


def test_an_unknown_key_is_named_with_the_nearest_known_one(tmp_path):
    line = mistake(tmp_path, "[training]\nbach_size = 3\n")
    assert line.startswith(f"{tmp_path / 'mine.toml'}: training.bach_size: unknown key")
    assert "did you mean batch_size?" in line


def test_a_wrong_type_says_what_was_found_and_what_is_allowed(tmp_path):
    line = mistake(tmp_path, '[training]\nbatch_size = "many"\n')
    assert line.endswith('training.batch_size: found "many", allowed: a whole number ≥ 1')


def test_true_is_not_a_number(tmp_path):
    assert "found true" in mistake(tmp_path, "[training]\nbatch_size = true\n")


def test_an_impossible_value_says_the_bounds(tmp_path):
    line = mistake(tmp_path, "[pipeline]\nworkers = 99\n")
    assert "found 99, allowed: a whole number ≥ 1 and ≤ 16 or auto" in line


def test_not_a_number_is_refused(tmp_path):
    assert "training.learning_rate" in mistake(tmp_path, "[training]\nlearning_rate = nan\n")


def test_a_near_miss_of_a_choice_is_suggested(tmp_path):
    assert "did you mean sgd?" in mistake(tmp_path, '[training]\noptimizer = "sdg"\n')
    assert "did you mean resnet50?" in mistake(tmp_path, '[training]\nnetwork = "resnet5"\n')


def test_a_mistake_in_a_setting_names_the_setting(tmp_path):
    assert mistake(tmp_path, "", "training.epochs=0").startswith("--set: training.epochs: found 0")


def test_a_setting_without_a_value_says_how_to_write_it(tmp_path):
    assert "write it as key=value" in mistake(tmp_path, "", "training.epochs")
    assert "write it as key=value" in mistake(tmp_path, "", "=3")


def test_each_mistake_is_one_line(tmp_path):
    text = mistake(tmp_path, "seed = -1\n[training]\nepochs = 0\n")
    assert len(text.splitlines()) == 2


def test_broken_toml_names_the_place(tmp_path):
    assert "not TOML" in mistake(tmp_path, "[training\n")


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(ExperimentError, match=r"none\.toml: cannot be read"):
        load(tmp_path / "none.toml")


def test_replicas_must_share_the_batch(tmp_path):
    line = mistake(tmp_path, "[training]\nbatch_size = 10\nreplicas = 3\n")
    assert "training.batch_size: found 10, allowed: a multiple of training.replicas (3)" in line


def test_a_remote_needs_a_local_place(tmp_path):
    assert "dataset.path" in mistake(tmp_path, '[dataset]\nremote = "sftp://a/b"\n')


def test_the_name_cannot_leave_the_runs_directory(tmp_path):
    assert "name: found" in mistake(tmp_path, 'name = "../../etc"\n')


def test_a_group_of_layers_is_a_key_of_its_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[profile.groups]\nfc1 = ["fc1*"]\nrest = ["*"]\n')
    setting = 'profile.groups.conv=["conv*", "bn*"]'
    groups = load(path, [setting, "profile.groups.rest="]).profile.groups
    assert groups == {"fc1": ["fc1*"], "conv": ["conv*", "bn*"]}


def test_a_setting_changes_none_of_the_values_it_is_put_upon():
    values = {"profile": {"groups": {"fc1": ["fc1*"]}}}
    parse(values, "x.toml", ['profile.groups.fc1=["other"]'])
    assert values == {"profile": {"groups": {"fc1": ["fc1*"]}}}


def test_a_wrong_group_says_what_is_allowed(tmp_path):
    line = mistake(tmp_path, "", "profile.groups.fc1=fc1*")
    assert line == '--set: profile.groups.fc1: found "fc1*", allowed: a list of texts'
    line = mistake(tmp_path, "[profile]\ngroups = 3\n")
    assert line.endswith("profile.groups: found 3, allowed: a table: name = a list of texts")
    assert "found 4" in mistake(tmp_path, "[profile.groups]\nfc1 = [4]\n")


def test_an_unknown_mode_of_profiling_is_a_line(tmp_path):
    line = mistake(tmp_path, '[profile]\nmode = "windows"\n')
    assert line.endswith("allowed: off, window, every; did you mean window?")


@pytest.mark.parametrize("comments", [True, False])
def test_what_is_written_reads_back_the_same(comments):
    asked = load(
        None,
        [
            "training.iterations=7",
            'dataset.classes=["a b", "ü"]',
            "seed=5",
            'profile.groups={"a.b" = ["x*"], fc = ["fc1", "fc2"]}',
            "profile.sample_ms=0",
        ],
    )
    assert parse(tomllib.loads(to_toml(asked, comments=comments)), "again") == asked


def test_the_commented_file_names_every_key():
    text = to_toml(Experiment(), comments=True)
    asked = Experiment()
    for section in (asked, asked.dataset, asked.pipeline, asked.training, asked.profile):
        for key in type(section).model_fields:
            assert key in text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=4,
    ),
    st.sampled_from(
        [
            "seed",
            "dataset",
            "dataset.classes",
            "pipeline.workers",
            "training.network",
            "profile.start",
            "profile.groups",
            "profile.groups.fc1",
        ]
    ),
)
def test_no_value_whatever_gives_anything_but_an_experiment_or_a_line(value, key):
    values: dict = {}
    *tables, last = key.split(".")
    target = values
    for table in tables:
        target = target.setdefault(table, {})
    target[last] = value
    try:
        assert isinstance(parse(values, "x.toml"), Experiment)
    except ExperimentError as error:
        assert "x.toml: " in str(error)
        assert key.split(".")[0] in str(error)
