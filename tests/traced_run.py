"""A run with a traced window, and traces of other people's, made in milliseconds without training.

A step takes 10 ms: 1 waiting for input, then in a call of `train_step` conv forward 3, dense
forward 1, dense backward 1, conv backward 3, the optimizer's op a quarter; the rest is the
function's, and half a millisecond Python's. With `pipeline`, two threads of the input pipeline
decode for 8 ms a step each, resize for 1, and half a millisecond is nobody's.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.traces.planes import Trace
from timesink.ledger.opmap import LAYER, Entry, OpMap, Share
from timesink.runs.directory import RunDirectory
from timesink.runs.journal import Journal

MS = 1_000_000
STEP_NS = 10 * MS
CLOCK_NS = 7_000_000_123
"""How far the trace's clock is ahead of the journal's."""
SESSION = "profile/plugins/profile/2026_11_16_09_00_00_p1_w001"


def write_trace(
    folder: Path,
    steps: Sequence[int] = (4, 5, 6),
    *,
    host: str = "host",
    file: str | None = None,
    markers: bool = True,
    calls: bool = True,
    replicas: int = 1,
    layers: tuple[str, str] = ("conv", "dense"),
    retraced: bool = False,
    more: Sequence[str] = (),
    pipeline: bool = False,
) -> Path:
    """Write one host's file; `more` are layers that run beside the others for an instant."""
    trace = Trace(host)
    plane = trace.host()
    python = plane.line("python", CLOCK_NS)
    threads = [plane.line(f"tf_Compute/{number}", CLOCK_NS) for number in range(replicas)]
    makers = [plane.line(f"tf_data_map/{number}", CLOCK_NS) for number in range(2 * pipeline)]
    first, second = layers
    for number in steps:
        begin = CLOCK_NS + number * STEP_NS
        if markers:
            stats = {"step_num": number, "_r": 1, "host_ns": number * STEP_NS}
            python.event("train", begin, begin + STEP_NS, **stats)
        python.event("IteratorGetNextOp::DoCompute", begin, begin + MS)
        if calls:
            word = "traced-nonXla" if retraced and number == steps[0] else "notTraced-nonXla"
            python.event("train_step", begin + MS, begin + 9 * MS + MS // 2, tf_function_call=word)
        for replica, thread in enumerate(threads):
            before = f"replica_{replica}/" if replica else ""
            for path, op_type, from_ms, to_ms in (
                (f"net/{first}/Conv2D", "Conv2D", 1, 4),
                (f"net/{second}/MatMul", "MatMul", 4, 5),
                (f"gradient_tape/net/{second}/MatMul/MatMul", "MatMul", 5, 6),
                (f"gradient_tape/net/{first}/Conv2D/Grad", "Conv2DBackpropFilter", 6, 9),
                ("sgd/Sub", "Sub", 9, 9.25),
            ):
                at = begin + int(from_ms * MS)
                thread.event(f"{before}{path}:{op_type}", at, begin + int(to_ms * MS))
            for place, name in enumerate(more):
                at = begin + 9 * MS + 300_000 + place * 1000
                thread.event(f"{before}gradient_tape/net/{name}/Mul/Mul:Mul", at, at + 1000)
        for maker in makers:
            maker.event("decode/DecodeJpeg:DecodeJpeg", begin, begin + 8 * MS)
            maker.event("resize/ResizeBilinear:ResizeBilinear", begin + 8 * MS, begin + 9 * MS)
            maker.event("strange:Strange", begin + 9 * MS, begin + 9 * MS + MS // 2)
        stats = {"allocator_name": "cpu", "bytes_allocated": 50 * 2**20 + number}
        python.event("MemoryAllocation", begin + 2 * MS, begin + 2 * MS, **stats)
    folder.mkdir(parents=True, exist_ok=True)
    return trace.write(folder, file or f"{host}.xplane.pb")


def write_session(logdir: Path, name: str, **options) -> Path:
    """Write a session as TensorBoard finds it; gives the file."""
    return write_trace(logdir / "plugins" / "profile" / name, **options)


def opmap(first: str = "conv1", second: str = "fc1/dense") -> OpMap:
    """A map that gives the layers other names than the ops have, so that its use is seen."""
    named = {
        "net/conv/Conv2D": (first, "forward"),
        "net/dense/MatMul": (second, "forward"),
        "gradient_tape/net/dense/MatMul/MatMul": (second, "backward"),
        "gradient_tape/net/conv/Conv2D/Grad": (first, "backward"),
    }
    entries = {path: Entry((Share(LAYER, *each),)) for path, each in named.items()}
    # The optimizer updates all of conv1 and a part of the dense layer in one fused op.
    shares = (Share(LAYER, first, "update", 0.8), Share(LAYER, second, "update", 0.2))
    entries["sgd/Sub"] = Entry(shares)
    return OpMap(entries, {first: "Conv2D", second: "Dense"}, "optimized graph")


def write_run(
    path: Path,
    *,
    steps: int = 9,
    traced: Sequence[int] = (4, 5, 6),
    groups=None,
    probes: Mapping[str, Mapping[str, float | str]] | None = None,
    **options,
) -> RunDirectory:
    """Write a finished run; nothing is traced where `traced` is empty.

    With `probes`, what was measured alone, it asks for a verdict.
    """
    path.mkdir(parents=True, exist_ok=True)
    now = [0]
    journal = Journal(path / "log.txt", 1, 0, lambda: now[0])
    profile = {"mode": "window" if traced else "off", "groups": groups or {}}
    experiment = {"name": "x", "training": {"network": "tiny", "batch_size": 8}, "profile": profile}
    if probes is not None:
        profile["verdict"] = True
        asked = {"source": "raw", "stages": "seed000", "stored": "uint8", "mode": "pipelined"}
        experiment["pipeline"] = {**asked, "workers": "auto", "prefetch": "auto"}
    journal.write("run", experiment=experiment, machine={})
    journal.write("process_started", utc="2026-11-16T09:00:00+00:00")
    journal.write("network", network="tiny", parameters=10, iterations=steps, resumed_at=0)
    journal.account("steps")
    for number in range(1, steps + 1):
        now[0] = (number + 1) * STEP_NS
        times = {"begin_ns": number * STEP_NS, "data_ns": MS, "compute_ns": 8 * MS}
        figures = {"images": 8, "loss": 1.0, "top1": 0.5, "topn": 1.0}
        journal.write("step", split="train", epoch=1, iteration=number, **times, **figures)
    if traced:
        file = write_trace(path / SESSION, traced, **options)
        window = {"window": 1, "first": traced[0], "last": traced[-1], "bytes": 1}
        name = str(file.relative_to(path))
        journal.write("profile_window", file=name, start_ns=1, stop_ns=1, **window)
        (path / "opmap.json").write_text(opmap().to_json())
    journal.account("teardown")
    journal.write("completed")
    journal.write("process_ended", exit=0, wall_ns=now[0] + MS, peak_memory_bytes=2**20)
    for kind, figures in (probes or {}).items():
        begin_ns, now[0] = now[0] + MS, now[0] + 4 * MS
        journal.write("probe", kind=kind, begin_ns=begin_ns, wall_ns=3 * MS, **figures)
    journal.close()
    patterns = "\n".join(f"{name} = {words}" for name, words in (groups or {}).items())
    (path / "experiment.toml").write_text(f"[profile.groups]\n{patterns}\n")
    return RunDirectory(path)
