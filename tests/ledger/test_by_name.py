"""A map of ops from names alone: what Keras' names say, and where they mislead."""

import pytest

from tests.ledger.timeline import Timeline
from timesink.ledger.by_name import opmap_from_names
from timesink.ledger.opmap import LAYER, Share
from timesink.traces.events import Member, Name

INLINED = "StatefulPartitionedCall/"


def shares(*ops: tuple[str, str]) -> dict[str, Share]:
    """Map ops that run one after the other; give each one's share."""
    line = Timeline()
    for place, (path, op_type) in enumerate(ops):
        line.op(path, 10 * place, 10 * place + 5, type=op_type)
    return {
        path: entry.shares[0] for path, entry in opmap_from_names(line.events()).entries.items()
    }


NETWORK = (
    ("net_1/conv_1/convolution", "Conv2D"),
    ("net_1/bn_1/batchnorm/mul_1", "Mul"),
    ("loss/Mean", "Mean"),
    ("gradient_tape/net_1/bn_1/batchnorm/mul_1/Mul", "Mul"),
    ("gradient_tape/net_1/conv_1/convolution/Conv2DBackpropFilter", "Conv2DBackpropFilter"),
    ("sgd/Sub_4", "Sub"),
)


@pytest.mark.parametrize("prefix", ["", INLINED, "replica_1/", f"{INLINED}PartitionedCall_2/"])
def test_layer_and_phase_are_read_off_the_path_behind_what_inlining_put_there(prefix):
    found = shares(*((prefix + path, op_type) for path, op_type in NETWORK))
    assert list(found.values()) == [
        Share(LAYER, "conv", "forward"),
        Share(LAYER, "bn", "forward"),
        Share("loss"),
        Share(LAYER, "bn", "backward"),
        Share(LAYER, "conv", "backward"),
        Share(LAYER, None, "update"),
    ]


def test_layers_come_in_the_order_in_which_they_first_ran():
    line = Timeline()
    first, *others = enumerate(NETWORK)
    for place, (path, op_type) in [*others, first]:
        line.op(path, 10 * place, 10 * place + 5, type=op_type)
    assert list(opmap_from_names(line.events()).layers) == ["conv", "bn"]


def test_numbers_stay_where_two_layers_would_become_one():
    found = shares(
        ("gradient_tape/net/shared_1/MatMul/MatMul", "MatMul"),
        ("gradient_tape/net/shared_3/MatMul/MatMul", "MatMul"),
        ("gradient_tape/net/other_3/MatMul/MatMul", "MatMul"),
    )
    assert [share.layer for share in found.values()] == ["shared_1", "shared_3", "other"]


def test_a_layer_of_a_nested_model_keeps_the_models_name():
    found = shares(("gradient_tape/net/block_1/c_1/convolution/Conv2DBackpropInput", "Conv2D"))
    assert [share.layer for share in found.values()] == ["block/c"]


def test_what_a_layer_opens_inside_itself_is_no_layer():
    found = shares(
        ("gradient_tape/net/drop_1/stateless_dropout/Mul", "Mul"),
        ("net/drop_1/Cast_2/ReadVariableOp", "ReadVariableOp"),
    )
    assert {share.layer for share in found.values()} == {"drop"}


def test_optimizers_collectives_and_sent_tensors_are_told_by_name_or_type():
    found = shares(
        ("adam/Mul_2", "Mul"),
        ("anything", "ResourceApplyMomentum"),
        ("group/reduce", "CollectiveReduceV2"),
        ("edge_12", "_Recv"),
        ("AddN_3", "AddN"),
        ("compile_loss/x/Sum", "Sum"),
    )
    assert list(found.values()) == [
        Share(LAYER, None, "update"),
        Share(LAYER, None, "update"),
        Share("collective"),
        Share("host_to_device"),
        Share(LAYER, None, "backward"),
        Share("loss"),
    ]


def test_a_replicas_ops_run_on_a_device_of_its_own():
    line = Timeline().op("gradient_tape/net/a/MatMul/MatMul", 0, 5)
    line.op("replica_1/gradient_tape/net/a/MatMul/MatMul", 0, 5)
    assert [each.device for each in opmap_from_names(line.events()).entries.values()] == [
        None,
        "CPU:1",
    ]


def test_a_convolution_fused_with_a_later_layer_goes_back_to_the_one_that_lost_it():
    fused = "net/relu/Relu"
    found = shares(
        (fused, "_FusedConv2D"),
        ("gradient_tape/net/relu/ReluGrad", "ReluGrad"),
        ("gradient_tape/net/conv/convolution/Conv2DBackpropFilter", "Conv2DBackpropFilter"),
    )
    # With a gradient that is no convolution, relu is the stranger and conv the orphan.
    assert found[fused] == Share(LAYER, "conv", "forward")


def test_ops_inside_compiled_instructions_are_mapped_too():
    line = Timeline().op("Identity", 0, 1)
    path = "gradient_tape/net/conv/convolution"
    line.hlo[Name("fusion", "module")] = (Member(path, 1.0),)
    assert opmap_from_names(line.events()).entries[path].shares == (
        Share(LAYER, "conv", "backward"),
    )


def test_ops_of_the_input_pipeline_are_not_mapped():
    line = Timeline().op("a/Mul", 0, 1)
    line.op("b/Mul", 0, 1, on=line.thread("tf_data_map", input=True))
    assert set(opmap_from_names(line.events()).entries) == {"a/Mul"}
