"""The journal's events made into one value: a run's processes, their steps and what they met."""

import sys
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from timesink.ledger.run_ledger import close_run
from timesink.runs.journal import Event

NEEDED = ("iteration", "begin_ns", "compute_ns")
"""What every step has, whoever ran it."""
MISSING = -1
"""Of a whole number in a step that nobody could know: a loop that is not ours hides its waiting."""

SAID_AFTERWARDS = ("lost", "process_ended", "probe")
"""The supervisor's words: no sign of life of the process they are about."""

PROBES = ("input", "compute")
"""What is measured alone for the verdict, in this order."""


class StepColumns:
    """The steps of a process as columns: a million of them must not cost gigabytes."""

    def __init__(self) -> None:
        self.split: list[str] = []
        self.integers = {
            name: array("q")
            for name in ("epoch", "iteration", "begin_ns", "data_ns", "compute_ns", "images")
        }
        self.executed = array("q")
        """How many iterations each is: Keras can do several in one call."""
        self.floats = {name: array("d") for name in ("loss", "top1", "topn")}

    def __len__(self) -> int:
        return len(self.split)

    def append(self, fields: Mapping[str, Any]) -> None:
        """Add the step of one line of the journal."""
        self.split.append(sys.intern(fields["split"]))
        self.executed.append(fields.get("executed", 1))
        for name, integers in self.integers.items():
            known = fields[name] if name in NEEDED else fields.get(name, MISSING)
            integers.append(known)
        for name, floats in self.floats.items():
            floats.append(float(fields.get(name, "nan")))  # "nan" is a word in the journal


@dataclass
class ProcessRecord:
    """One process of a run."""

    number: int
    started_utc: str = ""
    cores: int | None = None  # that it was given
    resumed_at: int = 0
    steps: StepColumns = field(default_factory=StepColumns)
    transitions: list[tuple[int, str]] = field(default_factory=list)
    last_evidence_ns: int = 0
    ended: dict[str, Any] | None = None  # the supervisor's last word; None if it was killed too
    completed: bool = False
    stopped: bool = False
    error: dict[str, Any] | None = None
    probed_until_ns: int = 0  # when the last measurement after it was over
    lost: bool = False  # it ended without a word: the error is what the supervisor made of it

    @property
    def gone_ns(self) -> int:
        """The moment the process was gone, or its last sign of life."""
        return int(self.ended["wall_ns"]) if self.ended else self.last_evidence_ns

    @property
    def end_ns(self) -> int:
        """The moment the process was gone, and what was measured after it too."""
        return max(self.gone_ns, self.probed_until_ns)

    @property
    def ended_well(self) -> bool:
        """Whether it came to its own end: finished, stopped when asked, or failed and said so."""
        return self.completed or self.stopped or (self.error is not None and not self.lost)

    def accounts(self) -> dict[str, int]:
        """Give the closed ledger of this process, in nanoseconds."""
        probing = [(self.gone_ns, "probe")] if self.probed_until_ns else []
        return close_run(
            [*self.transitions, *probing],
            end_ns=self.end_ns,
            last_evidence_ns=self.last_evidence_ns,
            ended_well=self.ended_well,
        )


@dataclass
class RunRecord:
    """Everything the journal says of a run."""

    experiment: dict[str, Any] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    dataset: dict[str, Any] = field(default_factory=dict)
    network: dict[str, Any] = field(default_factory=dict)
    processes: dict[int, ProcessRecord] = field(default_factory=dict)
    validations: list[dict[str, Any]] = field(default_factory=list)
    bad_images: dict[str, str] = field(default_factory=dict)  # path → reason
    checkpoints: list[int] = field(default_factory=list)
    windows: list[dict[str, Any]] = field(default_factory=list)  # traces, with their process
    profile_failures: list[str] = field(default_factory=list)
    retraces: list[dict[str, Any]] = field(default_factory=list)
    probes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What they found; `failed` says why one found nothing."""
    input_nodes: list[dict[str, Any]] = field(default_factory=list)
    """What tf.data counted, a node each; of the last process."""
    cache: dict[str, Any] | None = None
    """How much of the files lay in memory before training; None where nobody asked."""
    disk_read_bytes: int | None = None
    peak_device_bytes: int | None = None
    hooks: dict[str, list[int]] = field(default_factory=dict)  # callback → calls, nanoseconds
    py_functions: dict[str, str] = field(default_factory=dict)  # op → the Python that it calls
    attached: str | None = None
    """How the training was run, where it was not by Timesink."""

    @property
    def status(self) -> str:
        """Say how the run stands: complete, stopped, failed, killed, or running."""
        if not self.processes:
            return "killed"
        last = self.processes[max(self.processes)]
        if last.completed:
            return "complete"
        if last.error is not None:
            return "failed"
        if last.stopped:
            return "stopped"
        return "killed"


def record_of(events: Iterable[Event]) -> RunRecord:
    """Fold the events of a journal into a record."""
    run = RunRecord()
    for event in events:
        process = run.processes.get(event.process)
        if process is None:
            process = run.processes[event.process] = ProcessRecord(event.process)
        fields = event.fields
        if event.name not in SAID_AFTERWARDS:
            process.last_evidence_ns = max(process.last_evidence_ns, event.at_ns)
        match event.name:
            case "step":
                process.steps.append(fields)
            case "account":
                process.transitions.append((int(fields["begin_ns"]), str(fields["account"])))
            case "run":
                run.experiment, run.machine = fields["experiment"], fields["machine"]
                run.attached = fields.get("attached")
            case "process_started":
                process.started_utc, process.cores = fields["utc"], fields.get("cores")
            case "dataset":
                run.dataset = fields
            case "network":
                run.network = fields
                process.resumed_at = fields["resumed_at"]
            case "validation":
                run.validations.append(fields)
            case "bad_image":
                run.bad_images[fields["path"]] = fields["reason"]
            case "checkpoint":
                run.checkpoints.append(fields["iteration"])
            case "profile_window":
                run.windows.append({"process": event.process, **fields})
            case "profile_failed":
                run.profile_failures.append(fields["reason"])
            case "retrace":
                run.retraces.append(fields)
            case "probe":
                run.probes[fields["kind"]] = fields
                until_ns = fields["begin_ns"] + fields["wall_ns"]
                process.probed_until_ns = max(process.probed_until_ns, until_ns)
            case "input_counters":
                run.input_nodes = fields["nodes"]
            case "cache":
                run.cache = fields
            case "disk_read":
                run.disk_read_bytes = (run.disk_read_bytes or 0) + fields["bytes"]
            case "hooks":
                for name, calls, took_ns in fields["hooks"]:
                    total = run.hooks.setdefault(name, [0, 0])
                    total[0] += calls
                    total[1] += took_ns
            case "py_functions":
                run.py_functions |= fields["places"]
            case "device_memory":
                run.peak_device_bytes = max(run.peak_device_bytes or 0, fields["peak_bytes"])
            case "completed":
                process.completed = True
            case "stopped":
                process.stopped = True
            case "error":
                process.error = fields
            case "lost":
                process.error, process.lost = fields, True
            case "process_ended":
                process.ended = fields
    return run
