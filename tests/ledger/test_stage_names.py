"""Names as TensorFlow 2.21 writes them, and the stages they say."""

import pytest

from timesink.ledger.stage_names import OpPlaces, bare_path, place_event, stage_of_caller
from timesink.traces.events import Name

KNOWN = ("read", "decode", "resize", "random_brightness", "clip")


def stage(path, op_type, known=KNOWN, others=()):
    """The stage of one op, or what else it is."""
    op = Name(path, op_type)
    place = OpPlaces([op, *(Name(other, "X") for other in others)], known).place(op)
    return place.stage or place.kind


@pytest.mark.parametrize(
    ("path", "op_type", "told"),
    [
        ("decode/decode_image/DecodeImage", "DecodeImage", "decode"),
        ("random_brightness/ArithmeticOptimizer/AddOpsRewrite_add_1", "AddV2", "random_brightness"),
        ("clip_1/clip_by_value/Minimum", "Minimum", "clip"),
        ("StatefulPartitionedCall/clip/Minimum", "Minimum", "clip"),
        ("cond/then/_0/cond/read/GatherV2", "GatherV2", "read"),
        ("map/while/body/_1/map/while/resize/ResizeBilinear", "ResizeBilinear", "resize"),
        ("mine/clip/Minimum", "Minimum", "clip"),
        # The scope of a known stage is stronger than what the op does.
        ("random_brightness/Cast", "Cast", "random_brightness"),
        ("read/PyFunc", "PyFunc", "read"),
    ],
)
def test_an_op_in_the_scope_of_a_known_stage_is_that_stage_s(path, op_type, told):
    assert stage(path, op_type) == told


def test_an_operation_that_two_layers_drew_is_one():
    places = OpPlaces([], ("randaugment", "randaugment.rotate"))
    layers = [
        places.place(
            Name(f"randaugment.rotate/GatherV2_tfg_inlined_randaugment/{call}", "GatherV2")
        )
        for call in ("StatelessCase_3", "StatelessCase_1_3")
    ]
    assert layers[0] == layers[1]
    assert layers[0].stage == "randaugment.rotate"
    assert places.place(Name("randaugment/mul", "Mul")).stage == "randaugment"


@pytest.mark.parametrize(
    ("path", "op_type", "told"),
    [
        ("ReadFile", "ReadFile", "read"),
        ("mine/DecodeJpeg", "DecodeJpeg", "decode"),
        ("DecodeAndCropJpeg", "DecodeAndCropJpeg", "decode"),
        ("decode_raw/DecodeRaw", "DecodeRaw", "decode"),
        ("mine/resize/ResizeBicubic", "ResizeBicubic", "resize"),
        ("resize/ScaleAndTranslate", "ScaleAndTranslate", "resize"),
        ("ParseSingleExample/ParseExample/ParseExampleV2", "ParseExampleV2", "parse"),
        ("PyFunc", "PyFunc", "python: PyFunc"),
        ("PyFunc_1", "PyFunc", "python: PyFunc_1"),
        ("mine/EagerPyFunc", "EagerPyFunc", "python: mine"),
        ("Cast", "Cast", "convert"),
        ("ReverseV2", "ReverseV2", "flip"),
        ("RandomUniform", "RandomUniform", "random"),
    ],
)
def test_without_a_known_scope_the_type_of_an_op_says_what_it_does(path, op_type, told):
    assert stage(path, op_type, known=()) == told


@pytest.mark.parametrize(
    ("path", "op_type", "told"),
    [
        ("augment/Cast", "Cast", "augment"),
        ("augment_1/mul", "Mul", "augment_1"),
        ("adjust_contrast/Identity", "AdjustContrastv2", "adjust_contrast"),
        ("augment/while/body/_1/augment/while/mul", "Mul", "augment"),
        ("while/body/_1/while/cond/then/_5/while/cond/augment/mul", "Mul", "augment"),
        ("cond/PartitionedCall/augment/mul", "Mul", "augment"),
        ("map/while/body/_1/map/while/augment/mul", "Mul", "augment"),
        ("map/while/body/_1/map/while/TensorArrayV2Write/TensorListSetItem", "X", "map"),
        ("map/TensorArrayV2Stack/TensorListStack", "TensorListStack", "map"),
    ],
)
def test_any_other_op_is_placed_by_the_outermost_scope_of_its_own(path, op_type, told):
    assert stage(path, op_type, known=()) == told


def test_an_op_may_have_the_name_of_its_scope():
    others = ["clip_by_value/Minimum"]
    assert stage("clip_by_value", "Maximum", known=(), others=others) == "clip_by_value"
    assert stage("clip_by_value", "Maximum", known=()) == "unplaced"


@pytest.mark.parametrize(("path", "op_type"), [("mul", "Mul"), ("cond/Merge", "Merge"), ("x", "")])
def test_arithmetic_in_no_scope_is_unplaced(path, op_type):
    assert stage(path, op_type) == "unplaced"


@pytest.mark.parametrize(
    ("path", "op_type", "row"),
    [
        ("_send_read/x_0", "_Send", "executor"),
        ("PartitionedCall", "PartitionedCall", "executor"),
        ("ParallelMapDatasetV2", "ParallelMapDatasetV2", "iterators"),
        ("RangeDataset/_3", "RangeDataset", "iterators"),
    ],
)
def test_ops_that_only_pass_on_are_the_framework_s(path, op_type, row):
    place = OpPlaces([], KNOWN).place(Name(path, op_type))
    assert (place.kind, place.stage) == ("framework", row)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Iterator::Root::Prefetch::BatchV2", "batch"),
        ("Iterator::Root::Prefetch::PaddedBatchV2", "padded_batch"),
        ("Iterator::Root::Prefetch::MapAndBatch::ShuffleAndRepeat", "shuffle"),
        ("Iterator::Root::BatchV2::ForeverRepeat", "repeat"),
        (
            "Iterator::Root::MapAndBatch::ForeverRepeat[0]::Interleave[1]::FlatMap[0]::TFRecord",
            "read",
        ),
        ("Iterator::Root::BatchV2::ForeverRepeat[3]::MemoryCacheImpl", "cache"),
        ("Iterator::Root::BatchV2::FileCache", "cache"),
        ("Iterator::Root::MapAndBatch::SnapshotWriter", "snapshot"),
        ("Iterator::Root::MapAndBatch::SnapshotWriter::WriterIterator::Zip", "zip"),
        ("Iterator::Root::Prefetch::BatchV2::FlatMap[0]::Generator", "from_generator"),
        ("SingleElementIterator::MapAndBatch::TensorSlice", "from_tensor_slices"),
        ("Iterator::Root::Prefetch::GroupByWindow::RebatchV2", "rebatch"),
        ("ReduceDatasetOp::DoCompute", "reduce"),
        ("ToSingleElementOp::DoCompute", "get_single_element"),
    ],
)
def test_an_iterator_that_works_itself_is_a_stage_named_for_its_dataset(text, told):
    place = place_event(text)
    assert (place.kind, place.stage) == ("stage", told)


@pytest.mark.parametrize(
    "text",
    [
        "Iterator::Root::Prefetch",
        "Iterator::Root::Prefetch::MapAndBatch",
        "Iterator::Root::Prefetch::BatchV2::IgnoreErrors::ParallelMapV2",
        "Iterator::Root::Prefetch::BatchV2::ForeverRepeat[0]::ParallelInterleaveV4",
        "Iterator::Root::Prefetch::ParallelBatch",
        "ReduceIterator::Root::ParallelMapV2",
        "InstantiatedCapturedFunction::Run",
        "InstantiatedCapturedFunction::RunWithBorrowedArgs",
        "GetNextFromShard0",
    ],
)
def test_in_an_event_that_hands_out_what_others_made_a_thread_waits(text):
    assert place_event(text).kind == "wait"


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("ExecutorState::Process", "executor"),
        ("ExecutorDoneCallback", "executor"),
        ("MapAndBatchProduce", "scheduling"),
        ("ParallelMapConsume", "scheduling"),
        ("InstantiatedCapturedFunction::RunAsync", "scheduling"),
        ("FunctionRun", "scheduling"),
        ("MakeIterator::MapDataset", "iterators"),
        ("Iterator::Root", "iterators"),
        ("Iterator::Root::Prefetch::Map", "iterators"),
    ],
)
def test_bookkeeping_is_the_framework_s(text, row):
    place = place_event(text)
    assert (place.kind, place.stage) == ("framework", row)


@pytest.mark.parametrize("text", ["DecodeImageV2Op::JPEG", "convert_to_tensor", "ParallelFor"])
def test_an_event_of_another_name_is_part_of_what_it_is_in(text):
    assert place_event(text).kind == "inside"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Iterator::Root::Prefetch::BatchV2::Filter", "filter"),
        ("Iterator::Root::Prefetch::Map", "map"),
        ("ParallelMapProduce", "map"),
        ("MapAndBatchProduce", "map"),
        ("ParallelInterleaveProduce", "interleave"),
        ("Iterator::Root::Prefetch", None),
        ("ExecutorState::Process", None),
    ],
)
def test_a_function_belongs_to_the_dataset_that_calls_it(text, told):
    assert stage_of_caller(text) == told


def test_what_a_branch_within_a_loop_puts_around_a_path_comes_off():
    assert bare_path("a/while/body/_1/a/while/cond/then/_5/a/while/cond/x") == "a/x"
    assert bare_path("condense/whiles/x") == "condense/whiles/x"
