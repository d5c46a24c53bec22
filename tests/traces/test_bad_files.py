"""Files that are no traces, or not whole ones: one line says what is wrong, where, what to do."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.pictures import encoded
from tests.traces.planes import Trace
from timesink.errors import TraceError
from timesink.traces.messages import HloProto
from timesink.traces.xplane import find_traces, read_xplane


def whole_trace() -> Trace:
    """A trace with something of everything."""
    trace = Trace().warn("12 events dropped because of this.")
    program = trace.program("m")
    fused = program.computation("fused")
    fused.add("a", "add", "net/a", shape=(3, 4))
    program.computation("main").add("fusion.1", "fusion", "net/b", shape=(3, 4), calls=(fused,))
    host = trace.host()
    python = host.line("python", start_ns=77)
    python.event("train", 100, 5000, step_num=1, host_ns=10**15)
    python.event("step", 200, 4000, tf_function_call="traced-xla")
    python.event("fusion.1", 300, 400, hlo_op="fusion.1", hlo_module="m", program_id=1, _p=5)
    host.line("two").event("end: fusion.1", 800, 900, _c=5).event("x/y:Add", 1000, 1100)
    trace.gpu(0).line("Stream #7").event("kernel", 100, 200, tf_op="x/y:Add")
    return trace


def refusal(path: Path) -> str:
    with pytest.raises(TraceError) as caught:
        read_xplane(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert caught.value.exit_code == 4
    return message.removeprefix(f"{path}: ")


def test_a_trace_cut_at_any_byte_is_an_error_or_a_shorter_trace(tmp_path: Path) -> None:
    content = whole_trace().serialize()
    path = tmp_path / "cut.xplane.pb"
    whole = read_xplane(whole_trace().write(tmp_path))
    refused = []
    for length in range(len(content)):
        path.write_bytes(content[:length])
        try:
            assert 0 < len(read_xplane(path)) <= len(whole)
        except TraceError as error:
            refused.append(str(error))
    assert len(refused) > 0.9 * len(content)
    assert sum(": truncated: " in message for message in refused) > 0.9 * len(refused)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(data=st.data())
def test_a_damaged_trace_is_an_error_or_readable(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(whole_trace().serialize())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "damaged.xplane.pb"
    path.write_bytes(content)
    try:
        assert len(read_xplane(path))
    except TraceError as error:
        assert str(path) in str(error)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(min_size=1), st.text(min_size=1).map(str.encode)))
def test_any_other_bytes_are_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.xplane.pb"
    path.write_bytes(content)
    refusal(path)


def test_a_truncated_trace_says_where_it_breaks_off(tmp_path: Path) -> None:
    path = whole_trace().write(tmp_path)
    path.write_bytes(path.read_bytes()[:300])
    assert refusal(path).startswith("truncated: it breaks off after 300 bytes; copy it again")


def test_a_trace_damaged_within_is_not_called_truncated(tmp_path: Path) -> None:
    content = whole_trace().serialize()
    path = tmp_path / "damaged.xplane.pb"
    place = content.index(b"python") - 2
    no_field = b"\x07\x07"
    path.write_bytes(content[:place] + no_field + content[place + 2 :])
    assert refusal(path).startswith("damaged: ")


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    path = tmp_path / "a.xplane.pb"
    path.touch()
    assert refusal(path).startswith("empty: the file has no bytes")


def test_a_trace_without_events_is_called_empty(tmp_path: Path) -> None:
    trace = Trace()
    trace.host().line("python").event("ThreadpoolListener::Record", 0, 1)
    assert refusal(trace.write(tmp_path)).startswith("empty: it holds no events")


def foreign_message() -> bytes:
    proto = HloProto()
    proto.hlo_module.name = b"module"
    proto.hlo_module.computations.add(name=b"main", id=3).instructions.add(name=b"add.1")
    return proto.SerializeToString()


@pytest.mark.parametrize(
    "content",
    [
        b"step,loss\n1,2.5\n",
        b"\n\nA text that begins with an empty line.\n" * 20,
        b'{"traceEvents": []}',
        encoded("PNG"),
        foreign_message(),
        Trace().serialize(),
    ],
    ids=["csv", "text", "json", "picture", "other message", "no planes"],
)
def test_a_foreign_file_is_called_no_trace(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(content)
    assert refusal(path).startswith("not a trace of TensorFlow's profiler; name a *.xplane.pb file")


def test_a_compressed_trace_is_to_be_unpacked_first(tmp_path: Path) -> None:
    path = tmp_path / "a.xplane.pb.gz"
    path.write_bytes(gzip.compress(whole_trace().serialize()))
    assert "gunzip it first" in refusal(path)


def test_a_file_that_is_not_there_cannot_be_read(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.xplane.pb") == "cannot be read: No such file or directory"


def test_a_directory_is_not_read_as_a_trace(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "cannot be read: Is a directory"


def test_every_trace_below_a_directory_is_found_in_order(tmp_path: Path) -> None:
    for name in ("b/plugins/profile/2/y", "b/plugins/profile/2/x", "a", "b/plugins/profile/1/x"):
        path = tmp_path / f"{name}.xplane.pb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "b/plugins/profile/2/x.trace.json.gz").touch()
    assert [str(path.relative_to(tmp_path)) for path in find_traces(tmp_path)] == [
        "a.xplane.pb",
        "b/plugins/profile/1/x.xplane.pb",
        "b/plugins/profile/2/x.xplane.pb",
        "b/plugins/profile/2/y.xplane.pb",
    ]


def test_a_named_file_is_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "saved.pb"
    path.touch()
    assert find_traces(path) == [path]


def test_a_directory_without_traces_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "other.txt").touch()
    with pytest.raises(TraceError, match=r"no traces \(\*\.xplane\.pb\) here or below; profile"):
        find_traces(tmp_path)


def test_a_place_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no such file or directory"):
        find_traces(tmp_path / "nowhere")


def test_reading_traces_needs_no_tensorflow() -> None:
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, timesink.traces.xplane; assert 'tensorflow' not in sys.modules",
        ],
        check=True,
    )
