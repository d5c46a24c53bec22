"""What the name of a host's event says of it, before anything else of the event is read."""

import re

from timesink.traces.events import Kind, Name

MARK = "timesink:"
"""Begins the name of every event that Timesink itself puts into a trace."""
_SAMPLE = MARK + "sample "

# The millions: bookkeeping of thread pools and executors, and Python frames (`$train.py:10 main`).
# None carries a stat that we read.
_IDLE_TALK = ("ThreadpoolListener::", "ExecutorState::", "KernelAndDeviceFunc::", "$")

# An iterator is named by its way from the outermost: `Iterator::Root::Prefetch::BatchV2`; one that
# an op makes has its own prefix: `ReduceIterator::Root`.
_ITERATOR = re.compile(r"\w*Iterator::|InstantiatedCapturedFunction::")
_PIPELINE_THREAD = re.compile(
    _ITERATOR.pattern
    + r"|ExecutorState::|ExecutorDoneCallback$|FunctionRun$|\w+(?:Produce|Consume)$"
)
_RUN = ("InstantiatedCapturedFunction::", "ExecutorState::Process", "ExecutorDoneCallback")

# TensorFlow's own pattern of an op's name is `path:Type` (tsl/profiler/utils/tf_op_utils.cc);
# a type of another namespace reads `Namespace>Type`.
_OP = re.compile(r"(?P<path>\S+):(?P<type>[A-Z_][A-Za-z0-9_>]*)")
_OF_A_FUNCTION = ("__inference_", "__forward_", "__backward_")
_EXECUTE = re.compile(r"EagerLocalExecute(?:Async)?: (?P<op>\S+)")

# TraceMes around a wait in TensorFlow, XLA and PJRT, and CUDA's and ROCm's calls that block.
_BLOCKED = re.compile(
    r"BlockHostUntilDone(?:WithHostCallback)?"
    r"|BlockUntilReady"
    r"|ThunkExecutor::Execute \(wait for completion\)"
    r"|Wait(?:For|: | for )\w.*"
    r"|PjrtAsyncWait"
    r"|\S+ WaitReady"
    r"|(?:cu|hip)[A-Z]\w*Synchronize\w*"
)


def op_name(event_name: str) -> Name | None:
    """Split `path/of/op:Type` at its last colon; None where it is no op's name."""
    if "::" in event_name:
        return None
    match = _OP.fullmatch(event_name)
    return Name(match["path"], match["type"]) if match else None


def is_idle_talk(event_name: str) -> bool:
    """Whether no stat of such an event could make it evidence of anything."""
    return event_name.startswith(_IDLE_TALK)


def is_iterator(event_name: str) -> bool:
    """Whether it is an iterator's, or its call of a function: wherever a pipeline runs."""
    return _ITERATOR.match(event_name) is not None


def is_pipeline(event_name: str) -> bool:
    """Whether, on a thread of the input pipeline, it is the pipeline's bookkeeping."""
    return _PIPELINE_THREAD.match(event_name) is not None


def is_of_a_run(event_name: str) -> bool:
    """Whether its stat `id` says which run of a function it belongs to."""
    return event_name.startswith(_RUN)


def kind_of(event_name: str) -> tuple[Kind, Name] | None:
    """Say what an event of this name is evidence of; None where its name does not tell.

    XLA shows a compiled function as an op that lasts as long as all its instructions,
    `__inference_step_590:__inference_step_590`: that is no op.
    """
    if event_name.startswith(MARK):
        if event_name.startswith(_SAMPLE):
            return Kind.SAMPLE, Name(event_name.removeprefix(_SAMPLE))
        return Kind.SPAN, Name(event_name.removeprefix(MARK))
    if is_idle_talk(event_name):
        return None
    op = op_name(event_name)
    if "IteratorGetNext" in event_name:
        return Kind.INPUT, op or Name(event_name)
    if op:
        if op.type.startswith(_OF_A_FUNCTION):
            return Kind.FUNCTION, Name(op.type)
        return Kind.OP, op
    executed = _EXECUTE.fullmatch(event_name)
    if executed and executed["op"].startswith(_OF_A_FUNCTION):
        return Kind.FUNCTION, Name(executed["op"])
    if _BLOCKED.fullmatch(event_name):
        return Kind.BLOCKED, Name(event_name)
    return None
