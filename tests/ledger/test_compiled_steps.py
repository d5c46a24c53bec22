"""Compiled steps: instructions that are launched, wait, and run where no event shows it."""

from tests.ledger.timeline import Timeline, books, charged, layer, of_layer
from timesink.ledger.opmap import LAYER, Entry, OpMap, Share
from timesink.traces.events import Kind, Member, Name

OPMAP = OpMap(
    {
        "net/conv": layer("conv", "forward"),
        "net/dense": layer("dense", "forward"),
        "sgd/assign": layer("conv", "update"),
        "forward__conv_xla_7:": Entry((Share(LAYER, "grouped", "forward"),)),
    }
)


def compiled(line: Timeline, name: str, path: str, module: str = "a_step__.1") -> Timeline:
    line.hlo[Name(name, module)] = (Member(path, 1.0),)
    return line


def test_what_is_seen_running_goes_before_what_was_launched_and_had_not_ended() -> None:
    line = Timeline().step(1, 0, 1000)
    compiled(line, "convolution.1", "net/conv")
    compiled(line, "dot.2", "net/dense")
    line.add(Kind.HLO, "convolution.1", 0, 900, type="a_step__.1", number=100)
    line.add(Kind.HLO, "dot.2", 300, 700, type="a_step__.1", on=line.thread())
    found = charged(line.events(), OPMAP)
    assert found[of_layer("dense", "forward")] == 400
    assert found[of_layer("conv", "forward")] == 500
    rows = books(line.events(), OPMAP).filter(layer="conv")
    assert rows["op_ns"].sum() == 900
    assert sorted(rows.select("charged_ns", "estimated").iter_rows()) == [(100, False), (400, True)]


def test_a_convolution_that_borrowed_its_name_from_the_update_is_a_gradient() -> None:
    line = Timeline().step(1, 0, 1000)
    compiled(line, "convolution.9", "sgd/assign")
    compiled(line, "add_fusion", "sgd/assign")
    line.add(Kind.HLO, "convolution.9", 0, 600, type="a_step__.1")
    line.add(Kind.HLO, "add_fusion", 600, 700, type="a_step__.1")
    found = charged(line.events(), OPMAP)
    assert found[of_layer("conv", "backward")] == 600
    assert found[of_layer("conv", "update")] == 100


def test_an_instruction_without_a_name_is_its_functions_callers() -> None:
    module = "a_forward__conv_xla_7__.31"
    line = Timeline().step(1, 0, 1000)
    compiled(line, "copy.1", "", module)
    line.add(Kind.HLO, "copy.1", 0, 600, type=module)
    assert charged(line.events(), OPMAP)[of_layer("grouped", "forward")] == 600
