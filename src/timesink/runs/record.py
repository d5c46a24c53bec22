"""The journal's events made into one value: a run's processes, their steps and what they met."""

import sys
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from timesink.ledger.run_ledger import close_run
from timesink.runs.journal import Event


class StepColumns:
    """The steps of a process as columns: a million of them must not cost gigabytes."""

    def __init__(self) -> None:
        self.split: list[str] = []
        self.integers = {
            name: array("q")
            for name in ("epoch", "iteration", "begin_ns", "data_ns", "compute_ns", "images")
        }
        self.floats = {name: array("d") for name in ("loss", "top1", "topn")}

    def __len__(self) -> int:
        return len(self.split)

    def append(self, fields: Mapping[str, Any]) -> None:
        """Add the step of one line of the journal."""
        self.split.append(sys.intern(fields["split"]))
        for name, integers in self.integers.items():
            integers.append(fields[name])
        for name, floats in self.floats.items():
            floats.append(float(fields[name]))  # "nan" is a word in the journal


@dataclass
class ProcessRecord:
    """One process of a run."""

    number: int
    started_utc: str = ""
    resumed_at: int = 0
    steps: StepColumns = field(default_factory=StepColumns)
    transitions: list[tuple[int, str]] = field(default_factory=list)
    last_evidence_ns: int = 0
    ended: dict[str, Any] | None = None  # the supervisor's last word; None if it was killed too
    completed: bool = False
    stopped: bool = False
    error: dict[str, Any] | None = None
    lost: bool = False  # it ended without a word: the error is what the supervisor made of it

    @property
    def end_ns(self) -> int:
        """The moment the process was gone, or its last sign of life."""
        return int(self.ended["wall_ns"]) if self.ended else self.last_evidence_ns

    @property
    def ended_well(self) -> bool:
        """Whether it came to its own end: finished, stopped when asked, or failed and said so."""
        return self.completed or self.stopped or (self.error is not None and not self.lost)

    def accounts(self) -> dict[str, int]:
        """Give the closed ledger of this process, in nanoseconds."""
        return close_run(
            self.transitions,
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
    retraces: int = 0
    peak_device_bytes: int | None = None

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
        if event.name not in ("lost", "process_ended"):  # the supervisor's words, afterwards
            process.last_evidence_ns = max(process.last_evidence_ns, event.at_ns)
        match event.name:
            case "step":
                process.steps.append(fields)
            case "account":
                process.transitions.append((int(fields["begin_ns"]), str(fields["account"])))
            case "run":
                run.experiment, run.machine = fields["experiment"], fields["machine"]
            case "process_started":
                process.started_utc = fields["utc"]
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
            case "retrace":
                run.retraces += 1
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
