"""`timesink run conf.xml`: the older program's configuration trains."""

import json

from tests.runs.conftest import make_images

CONFIGURATION = """<?xml version="1.0" encoding="UTF-8"?>
<tensorflow_configuration>
  <input_classes>
    <local_path>{images}</local_path>
    <tfrecords_path>/tmp</tfrecords_path>
    <input_class>class2</input_class>
    <input_class>class0</input_class>
    <input_class>class1</input_class>
  </input_classes>
  <num_classes>2</num_classes>
  <images_per_class>9999</images_per_class>
  <network_type>alexnet_v2</network_type>
  <patience>3</patience>
  <epochs_number>1</epochs_number>
  <batch_size>16</batch_size>
  <momentum>0.9</momentum>
  <j>2</j>
</tensorflow_configuration>
"""


def test_the_configuration_of_the_older_program_trains(tmp_path, timesink):
    make_images(tmp_path / "images")
    (tmp_path / "conf.xml").write_text(CONFIGURATION.format(images=tmp_path / "images"))
    done = timesink("run", "conf.xml", "--out", "out", "--set", "pipeline.image_size=64")
    assert done.returncode == 0, done.stderr
    assert "passed over: tfrecords_path, patience" in done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["network"] == "alexnet"
    assert summary["steps"] == 2
    assert summary["dataset"]["classes"] == 2


def test_entities_are_refused(tmp_path, timesink):
    (tmp_path / "conf.xml").write_text(
        '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
        "<tensorflow_configuration><batch_size>&e;</batch_size></tensorflow_configuration>"
    )
    done = timesink("run", "conf.xml")
    assert done.returncode == 2
    assert "not accepted" in done.stderr
    assert "root:" not in done.stderr
