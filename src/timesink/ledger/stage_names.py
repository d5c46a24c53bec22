"""Which stage of the input pipeline an event belongs to, as far as its name says."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from timesink.ledger.by_name import INLINED
from timesink.ledger.opmap import CALLS
from timesink.traces.events import Name

Test = Callable[[str], bool]

BATCH, FROM_GENERATOR, PYTHON = "batch", "from_generator", "python: "
EXECUTOR, SCHEDULING, ITERATORS = "executor", "scheduling", "iterators"
"""The rows of work that the framework does for no stage: running ops, starting functions and
handing elements over, making iterators and passing through them."""

CALL = "InstantiatedCapturedFunction::"
CALL_STARTS = "FunctionRun"
EXECUTES = "ExecutorState::Process"
CALL_ENDS = "ExecutorDoneCallback"
FUSED_BATCH = "MapAndBatchProduce"
GENERATOR = "Generator"

_ITERATOR = re.compile(r"(?P<made>Make)?\w*Iterator::")
_ELEMENT = re.compile(r"\[\d+\]")
_VERSION = re.compile(r"V\d+$")
_NUMBERED = re.compile(r"_\d+$")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

# These hand out what other threads made: in them a thread waits.
_WAITING_DATASET = re.compile(r"Prefetch|MapAndBatch|(?:Legacy)?Parallel\w+|DataService")
_WAITING_EVENT = re.compile(r"GetNextFromShard\d+")
# Datasets and ops that have another name than the method that makes them.
_METHODS = {
    "TFRecord": "read",
    "FixedLengthRecord": "read",
    "TextLine": "read",
    "CSV": "read",
    "TensorSlice": "from_tensor_slices",
    "Tensor": "from_tensors",
    GENERATOR: FROM_GENERATOR,
    "ShuffleAndRepeat": "shuffle",
    "ForeverRepeat": "repeat",
    "FiniteRepeat": "repeat",
    "FiniteTake": "take",
    "FiniteSkip": "skip",
    "DirectedInterleave": "sample_from_datasets",
    "ToSingleElement": "get_single_element",
}
_CACHE, _SNAPSHOT = re.compile(r"(?:Memory|File|Disk)(?:Cache|Reader|Writer)"), "Snapshot"
# They pass an element on, and the work is their function's.
_PASSES_ON = frozenset(
    {"Root", "Model", "Optimize", "Options", "Finalize", "Map", "PrivateThreadPool"}
    | {"MaxIntraOpParallelism"}
)
_SCHEDULING = re.compile(r"\w+(?:Produce|Consume|InitializeInput)|FunctionRun|RemoteCallOp\w*")
_CALLER = re.compile(r"(?:Legacy)?(?:Parallel)?(\w+?)(?:AndBatch)?Produce")
_KERNEL = re.compile(r"(\w+?)(?:Dataset)?Op::(?:Do)?Compute")

# The function of a loop or a branch puts the op's whole path behind its own:
# `crop/cond/then/_0/crop/cond/Slice`, `map/while/body/_1/map/while/mul`.
_BRANCH = re.compile(r".*/(?:body|cond|then|else|branch\d+)/_\d+/")
_CONTROL = re.compile(
    r"(?<![^/])(?:map(?:_\d+)?/while(?:_\d+)?/(?=[^/]+/)|(?:while|cond|case)(?:_\d+)?/)"
)
# And Grappler puts the call's behind the op's: `equalise/Cast_tfg_inlined_draw/StatelessCase_1`.
_FUNCTION_IN_BRANCH = re.compile(r"_tfg_inlined_.*")
_LOOP_STORE = re.compile(r"(?<![^/])TensorArray\w*/")

# Whatever scope they stand in.
_FRAMEWORK_OP = re.compile(
    r"_(?:Host)?(?:Send|Recv)|_Arg|_Retval|NoOp|\w*Dataset(?:V\d+)?|\w*Iterator\w*"
)
_CLEAR_OPS = (
    (re.compile(r"ReadFile|ReaderRead\w*"), "read"),
    (re.compile(r"Parse\w*Example\w*|ParseTensor|DecodeProto\w*"), "parse"),
    (re.compile(r"Decode\w+|ExtractJpegShape"), "decode"),
    (re.compile(r"Resize\w+|ScaleAndTranslate|CropAndResize"), "resize"),
    (re.compile(r"CompressElement"), "compress"),
    (re.compile(r"UncompressElement"), "uncompress"),
)
_PYTHON_OP = re.compile(r"(?:Eager)?PyFunc(?:Stateless)?")
# What an op does that stands in no scope; of arithmetic nobody can say what it is for.
_BARE_OPS = (
    (re.compile(r"Cast"), "convert"),
    (re.compile(r"(?:Stateless)?(?:Random|TruncatedNormal|ParameterizedTruncated)\w*"), "random"),
    (re.compile(r"ReverseV2"), "flip"),
)


@dataclass(frozen=True)
class Place:
    """Where an event's own time goes."""

    kind: Literal["stage", "framework", "wait", "unplaced", "inside"]
    """`inside`: to the event around it; where there is none, it is unplaced."""
    stage: str = ""
    label: str = ""
    """The op or iterator; many names share one, as an iterator's elements are numbered."""


def place_event(text: str) -> Place:
    """Place the pipeline's own events: iterators, calls of functions, executor."""
    iterator = _ITERATOR.match(text)
    if iterator and iterator["made"]:
        return Place("framework", ITERATORS, "MakeIterator")
    if iterator:
        return _place_iterator(_VERSION.sub("", without_elements(text).rpartition("::")[2]))
    if waits_for_its_run(text):
        return Place("wait", label=text)
    if text.startswith(("ExecutorState::", CALL_ENDS)):
        return Place("framework", EXECUTOR, text)
    if text.startswith(CALL) or _SCHEDULING.fullmatch(text):
        return Place("framework", SCHEDULING, text)
    if _WAITING_EVENT.fullmatch(text):
        return Place("wait", label=text)
    if kernel := _KERNEL.fullmatch(text):
        return Place("stage", _method(kernel[1]), text)
    return Place("inside", label=text)


def _place_iterator(dataset: str) -> Place:
    if _WAITING_DATASET.fullmatch(dataset):
        return Place("wait", label=dataset)
    if dataset in _PASSES_ON:
        return Place("framework", ITERATORS, dataset)
    if _CACHE.match(dataset):
        return Place("stage", "cache", dataset)
    if dataset.startswith(_SNAPSHOT):
        return Place("stage", "snapshot", dataset)
    return Place("stage", _method(dataset), dataset)


def _method(name: str) -> str:
    return _METHODS.get(name) or _WORDS.sub("_", name).lower()


class OpPlaces:
    """Where ops go: by the scope of a known stage, by what they do, by their own scope."""

    def __init__(self, ops: Iterable[Name], known: Sequence[str]) -> None:
        self._known = frozenset(known)
        self._scopes = {scope for op in ops if (scope := _scope(bare_path(op.text)))}

    def place(self, op: Name) -> Place:
        """Place one op."""
        label = f"{op.text}:{op.type}" if op.type else op.text
        if op.type in CALLS or _FRAMEWORK_OP.fullmatch(op.type):
            row = ITERATORS if "Dataset" in op.type or "Iterator" in op.type else EXECUTOR
            return Place("framework", row, label)
        path = bare_path(op.text)
        parts = path.split("/")
        for number, part in enumerate(parts):
            for name in (part, _NUMBERED.sub("", part)):
                if name in self._known:
                    # What is called twice has two names, but only up to here.
                    rest = "/".join((name, *parts[number + 1 :]))
                    return Place("stage", name, f"{rest}:{op.type}")
        stage = self._stage(path, op.type)
        return Place("stage", stage, label) if stage else Place("unplaced", label=label)

    def _stage(self, path: str, op_type: str) -> str | None:
        for pattern, stage in _CLEAR_OPS:
            if pattern.fullmatch(op_type):
                return stage
        # The last op of a scope may have the scope's own name: `clip_by_value`.
        scope = _scope(path) or (path if path in self._scopes else None)
        if _PYTHON_OP.fullmatch(op_type):
            return PYTHON + (scope or path)
        if scope:
            return scope
        for pattern, stage in _BARE_OPS:
            if pattern.fullmatch(op_type):
                return stage
        return None


def is_python(op: Name) -> bool:
    """Whether the op calls a function of Python's."""
    return _PYTHON_OP.fullmatch(op.type) is not None


def says_nothing(text: str) -> bool:
    """Whether the time of such an event is that of the one around it."""
    return place_event(text).kind == "inside"


def waits_for_its_run(text: str) -> bool:
    """Whether it calls a function, and stays until that is done."""
    return text.startswith(CALL) and not text.endswith("Async")


def stage_of_caller(text: str) -> str | None:
    """Name the stage whose function such an event calls."""
    if produces := _CALLER.fullmatch(text):
        return _method(produces[1])
    if not is_iterator_event(text):
        return None
    place = place_event(text)
    return "map" if place.label == "Map" else place.stage if place.kind == "stage" else None


def without_elements(text: str) -> str:
    """Name a dataset alike for all the elements that it is made for anew."""
    return _ELEMENT.sub("", text)


def is_iterator_event(text: str) -> bool:
    """Whether an event is an iterator's that was asked for an element."""
    match = _ITERATOR.match(text)
    return match is not None and not match["made"]


def bare_path(path: str) -> str:
    """Take off what calls of functions, loops and branches put around an op's own path."""
    path = _FUNCTION_IN_BRANCH.sub("", path)
    path = _CONTROL.sub("", _LOOP_STORE.sub("", _BRANCH.sub("", path)))
    while inlined := INLINED.match(path):
        path = path[inlined.end() :]
    return path


def _scope(path: str) -> str | None:
    first, slash, _ = path.partition("/")
    return first if slash else None
