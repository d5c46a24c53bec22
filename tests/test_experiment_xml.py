"""The XML configuration of an older trainer becomes an experiment, or one line a mistake."""

from pathlib import Path

import pytest

from timesink import experiment
from timesink.errors import ExperimentError
from timesink.experiment_xml import ignored_elements, parse_xml

WHOLE = """<?xml version="1.0" encoding="UTF-8"?>
<tensorflow_configuration>
  <input_classes>
    <local_path>/data/flowers</local_path>
    <tfrecords_path>/data/records</tfrecords_path>
    <remote_location>
      <user>user</user><key>/keys/id</key><host>store.example</host><path>/srv/my flowers</path>
    </remote_location>
    <input_class>daisy</input_class>
    <input_class>rose</input_class>
    <input_class>tulip</input_class>
  </input_classes>
  <num_classes>2</num_classes>
  <images_per_class>700</images_per_class>
  <network_type>inception_v1</network_type>
  <epochs_number>5</epochs_number>
  <batch_size>64</batch_size>
  <momentum>0.8</momentum>
  <optimizer>momentum</optimizer>
  <learning_rate>0.02</learning_rate>
  <learning_rate_decay_type>exponential</learning_rate_decay_type>
  <dropout>0.2</dropout>
  <weight_decay>0.00004</weight_decay>
  <perform_validation>False</perform_validation>
  <gpus_number>2</gpus_number>
  <seed>1234</seed>
  <patience>3</patience>
  <model_out>/out</model_out>
  <j>4</j>
</tensorflow_configuration>
"""


def conf(inside: str, root: str = "tensorflow_configuration") -> bytes:
    return f"<{root}>{inside}</{root}>".encode()


def mistake(text: bytes) -> str:
    with pytest.raises(ExperimentError) as caught:
        parse_xml(text, "conf.xml")
    return str(caught.value)


def test_a_whole_configuration_becomes_an_experiment(tmp_path: Path) -> None:
    path = tmp_path / "conf.xml"
    path.write_text(WHOLE)
    asked = experiment.load(path)
    assert asked.seed == 1234
    assert asked.pipeline.workers == 4
    dataset, training = asked.dataset, asked.training
    assert dataset.path == "/data/flowers"
    assert dataset.classes == ["daisy", "rose"]
    assert dataset.images_per_class == 700
    assert dataset.remote == "sftp://user@store.example/srv/my%20flowers"
    assert dataset.remote_key == "/keys/id"
    assert (training.network, training.batch_size, training.epochs) == ("googlenet", 64, 5)
    assert (training.optimizer, training.momentum, training.learning_rate) == ("sgd", 0.8, 0.02)
    assert (training.schedule, training.dropout) == ("exponential", 0.2)
    assert (training.weight_decay, training.validation, training.replicas) == (4e-5, False, 2)


def test_set_stands_above_the_xml(tmp_path: Path) -> None:
    path = tmp_path / "conf.XML"
    path.write_bytes(conf("<batch_size>64</batch_size>", root="pytorch_configuration"))
    assert experiment.load(path, ["training.batch_size=8"]).training.batch_size == 8


def test_any_root_name_will_do() -> None:
    assert parse_xml(conf("<j>3</j>", root="mine"), "c") == {"pipeline": {"workers": 3}}


def test_9999_images_per_class_means_all_there_are() -> None:
    values = parse_xml(conf("<images_per_class>9999</images_per_class><j>1</j>"), "conf.xml")
    assert "dataset" not in values


def test_no_input_class_means_all_classes() -> None:
    text = conf(
        "<input_classes><local_path>/d</local_path></input_classes><num_classes>7</num_classes>"
    )
    assert parse_xml(text, "conf.xml") == {"dataset": {"path": "/d"}}
    assert ignored_elements(text, "conf.xml") == ("num_classes",)


def test_more_num_classes_than_input_classes_is_refused() -> None:
    text = conf(
        "<input_classes><input_class>a</input_class></input_classes><num_classes>2</num_classes>"
    )
    assert mistake(text) == (
        "conf.xml: num_classes: found 2, allowed: 1 to 1, the number of input_class elements"
    )


@pytest.mark.parametrize(
    ("written", "network"),
    [
        ("alexnet_v2", "alexnet"),
        ("vgg_16", "vgg16"),
        ("vgg11", "vgg11"),
        ("resnet_v1_50", "resnet50"),
        ("mobilenet_v2", "mobilenetv2"),
        ("GoogLeNet", "googlenet"),
    ],
)
def test_the_old_names_of_networks_are_known(written: str, network: str) -> None:
    values = parse_xml(conf(f"<network_type>{written}</network_type>"), "conf.xml")
    assert values["training"] == {"network": network}


@pytest.mark.parametrize(
    ("elements", "training"),
    [
        ("<optimizer>sgd</optimizer>", {"optimizer": "sgd", "momentum": 0.0}),
        (
            "<optimizer>sgd</optimizer><momentum>0.5</momentum>",
            {"optimizer": "sgd", "momentum": 0.5},
        ),
        ("<optimizer>adam</optimizer><momentum>0.9</momentum>", {"optimizer": "adam"}),
        ("<momentum>0.9</momentum>", {"momentum": 0.9}),
        (
            "<learning_rate_decay_type>fixed</learning_rate_decay_type>",
            {"schedule": "constant"},
        ),
    ],
)
def test_optimizer_and_schedule_are_translated(elements: str, training: dict[str, object]) -> None:
    assert parse_xml(conf(elements), "conf.xml")["training"] == training


def test_polynomial_decay_is_refused_with_the_reason() -> None:
    text = conf("<learning_rate_decay_type>polynomial</learning_rate_decay_type>")
    assert mistake(text).startswith(
        "conf.xml: learning_rate_decay_type: polynomial decay is not offered here: choose one of"
    )


def test_elements_without_meaning_are_named() -> None:
    assert ignored_elements(WHOLE.encode(), "c") == ("tfrecords_path", "patience", "model_out")
    text = conf("<optimizer>adam</optimizer><momentum>0.9</momentum>")
    assert ignored_elements(text, "c") == ("momentum",)


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        (
            "<j>1</j><batch_sise>4</batch_sise>",
            "batch_sise: unknown element; did you mean batch_size?",
        ),
        ("<batch_size>many</batch_size>", 'batch_size: found "many", allowed: a whole number'),
        ("<momentum>heavy</momentum>", 'momentum: found "heavy", allowed: a number'),
        ("<batch_size></batch_size>", "batch_size: empty: a value is needed"),
        ("<batch_size> <j>1</j></batch_size>", "batch_size: holds elements"),
        ("<j>1</j><j>2</j>", "j: given twice: keep one"),
        (
            "<perform_validation>maybe</perform_validation>",
            'perform_validation: found "maybe", allowed: True or False',
        ),
        (
            "<input_classes><local_pth>/d</local_pth></input_classes>",
            "input_classes.local_pth: unknown element; did you mean local_path?",
        ),
        (
            "<input_classes><input_class/></input_classes>",
            "input_classes.input_class: empty: a value is needed",
        ),
        (
            "<input_classes><remote_location><path>/d</path></remote_location></input_classes>",
            "input_classes.remote_location.host: missing: a value is needed",
        ),
        (
            "<input_classes><remote_location><host>h</host><path>d</path></remote_location>"
            "</input_classes>",
            'input_classes.remote_location.path: found "d", allowed: an absolute path',
        ),
    ],
)
def test_a_mistake_names_file_element_and_what_is_allowed(inside: str, message: str) -> None:
    assert mistake(conf(inside)) == f"conf.xml: {message}"


def test_an_unknown_network_lists_the_known_ones() -> None:
    line = mistake(conf("<network_type>resnet51</network_type>"))
    assert line.startswith('conf.xml: network_type: found "resnet51", allowed: alexnet, ')
    assert line.endswith("did you mean resnet50?")


def test_all_mistakes_are_told_at_once() -> None:
    lines = mistake(conf("<batch_size/><j>x</j>")).splitlines()
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (b'<!DOCTYPE c [<!ENTITY a "b">]><c><j>&a;</j></c>', "entities"),
        (b'<!DOCTYPE c SYSTEM "http://127.0.0.1/x.dtd"><c><j>1</j></c>', "DOCTYPE"),
        (
            b'<!DOCTYPE c [<!ENTITY a SYSTEM "file:///etc/passwd">]><c><j>&a;</j></c>',
            "external references",
        ),
        (b"<c><j>1</c>", "not XML"),
        (b"", "not XML"),
        (b'<?xml version="1.0" encoding="no-such"?><c><j>1</j></c>', "not XML"),
        ('<?xml version="1.0" encoding="UTF-8"?><c><j>é</j></c>'.encode("latin-1"), "not XML"),
        (b"<c><j>1</j>" + b" " * 2**22 + b"</c>", "bytes are too many"),
        (b"<recipe><flour>1</flour></recipe>", "not a training configuration"),
        (b"<a>" * 100_000 + b"</a>" * 100_000, "not a training configuration"),
    ],
)
def test_what_cannot_be_trusted_or_read_is_refused_in_one_line(text: bytes, part: str) -> None:
    line = mistake(text)
    assert line.startswith("conf.xml: ")
    assert part in line
    assert "\n" not in line


def test_login_and_path_are_percent_encoded() -> None:
    text = conf(
        "<input_classes><local_path>/d</local_path><remote_location><user>a@b</user>"
        "<host>::1</host><path>/p#q/50%</path></remote_location></input_classes>"
    )
    dataset = parse_xml(text, "conf.xml")["dataset"]
    assert dataset["remote"] == "sftp://a%40b@[::1]/p%23q/50%25"
