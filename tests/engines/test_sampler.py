"""The stack sampler: which place a stack is said to be at, and when it looks."""

import sysconfig
import threading
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

import pytest

import timesink
from timesink.engines.sampler import Places, Sampler

HOME = Path("/home/ann/project")
LIBRARY = sysconfig.get_path("stdlib")
OWN = str(Path(timesink.__file__).parent)
KERAS = "/home/ann/venv/lib/python3.11/site-packages/keras/src/utils/progbar.py"


@dataclass(frozen=True)
class Frame:
    """What the sampler looks at of a real frame."""

    f_code: CodeType
    f_lineno: int
    f_back: "Frame | None"
    f_lasti: int = 0


def code(path, function):
    return compile("", path, "exec").replace(co_name=function)


def stack(*calls):
    """Build a stack from its outermost call; each is (path, line, function)."""
    frame = None
    for path, line, function in calls:
        frame = Frame(code(path, function), line, frame)
    return frame


def place(*calls):
    return Places(HOME).of(stack(*calls))


LAUNCHER = ("<frozen runpy>", 88, "_run_code")
LOOP = (f"{OWN}/engines/tensorflow/train.py", 120, "step")
SCRIPT = (f"{HOME}/train.py", 12, "main")


def test_the_users_own_line_is_the_place():
    assert place(LAUNCHER, SCRIPT) == "train.py:12 main"


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("<stdin>", "<stdin>"),
        ("<ipython-input-3-abc>", "<ipython-input-3-abc>"),
        ("/tmp/ipykernel_71/2913.py", "notebook cell"),
    ],
)
def test_code_that_was_typed_is_the_users(file, shown):
    assert (
        place((file, 3, "wait"), (f"{LIBRARY}/json/encoder.py", 9, "encode")) == f"{shown}:3 wait"
    )


def test_the_innermost_of_the_users_lines_counts():
    assert place(SCRIPT, (f"{HOME}/models/net.py", 7, "call")) == "models/net.py:7 call"


@pytest.mark.parametrize(
    "inner",
    [
        (KERAS, 12, "update"),
        ("/usr/lib/python3/dist-packages/yaml/reader.py", 3, "read"),
        (f"{LIBRARY}/json/encoder.py", 9, "encode"),
        LOOP,
        ("<string>", 1, "__init__"),
    ],
    ids=["installed", "debian", "library", "timesink", "generated"],
)
def test_what_the_users_code_calls_is_charged_to_the_users_line(inner):
    assert place(SCRIPT, inner) == "train.py:12 main"


def test_without_any_code_of_the_users_the_library_is_named_within_its_package():
    assert place(LAUNCHER, LOOP, (KERAS, 12, "update")) == "keras/src/utils/progbar.py:12 update"


def test_without_any_code_of_the_users_the_innermost_library_is_named():
    inner = (f"{LIBRARY}/json/encoder.py", 9, "encode")
    assert place(LAUNCHER, (KERAS, 12, "update"), inner) == "json/encoder.py:9 encode"


def test_timesinks_own_work_is_not_blamed_on_the_launcher():
    assert place(LAUNCHER, LOOP) == "timesink/engines/tensorflow/train.py:120 step"


def test_a_file_elsewhere_is_named_without_its_directories():
    assert place(("/srv/secret/ann/job.py", 4, "go")) == "job.py:4 go"


def test_a_file_name_that_is_no_text_can_still_be_shown():
    assert place((f"{HOME}/caf\udce9.py", 4, "go")) == "caf?.py:4 go"


def test_two_lines_of_a_function_are_two_places():
    places, function = Places(HOME), code(f"{HOME}/a.py", "f")
    named = [places.of(Frame(function, line, None)) for line in (1, 2, 1)]
    assert named == ["a.py:1 f", "a.py:2 f", "a.py:1 f"]


def test_only_the_thread_that_made_the_sampler_is_looked_at():
    emitted = []
    frames = {threading.get_ident(): stack(SCRIPT), -1: stack((f"{HOME}/other.py", 1, "f"))}
    Sampler(5, emitted.append, frames=lambda: frames, places=Places(HOME)).look()
    assert emitted == ["train.py:12 main"]


def test_a_thread_that_is_gone_is_no_place():
    emitted = []
    Sampler(5, emitted.append, frames=dict).look()
    assert emitted == []


def test_a_thread_in_one_long_call_is_looked_at_less_often_until_it_moves():
    calling, moved = stack(SCRIPT), stack(SCRIPT)
    now = {threading.get_ident(): calling}
    sampler = Sampler(5, lambda _: None, frames=lambda: now, places=Places(HOME))
    pauses_ms = []
    for _ in range(5):
        sampler.look()
        pauses_ms.append(round(1e3 * sampler.pause_s))
    now[threading.get_ident()] = moved
    sampler.look()
    assert pauses_ms == [5, 10, 20, 40, 40]
    assert round(1e3 * sampler.pause_s) == 5


def test_it_looks_by_itself_until_it_is_stopped():
    emitted, enough = [], threading.Event()

    def emit(seen):
        emitted.append(seen)
        if len(emitted) == 3:
            enough.set()

    before = threading.active_count()
    sampler = Sampler(0.1, emit)
    sampler.start()
    assert enough.wait(30)
    sampler.stop()
    assert threading.active_count() == before
    # This very test is what the main thread was doing.
    assert all("test_sampler.py:" in seen for seen in emitted)
