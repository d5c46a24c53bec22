"""Real traces of a tiny computation: files, markers, accounts, and what may go wrong."""

import errno
import gc
import shutil
import threading
import time

import pytest
import tensorflow as tf
from tests.traced import read_events

from timesink.engines.tensorflow import capture as capture_module
from timesink.engines.tensorflow import profiler
from timesink.engines.tensorflow.capture import Capture, span


@pytest.fixture(autouse=True)
def _no_trace_is_left_running():
    yield
    with pytest.raises(tf.errors.UnavailableError):
        tf.profiler.experimental.stop()


class FakeRecorder:
    """Keeps what it is told; a real clock."""

    process = 3

    def __init__(self):
        self.told, self.accounts = [], []

    def now_ns(self):
        return time.monotonic_ns()

    def account(self, name):
        self.accounts.append(name)

    def write(self, event, **fields):
        self.told.append((event, fields))

    def of(self, name):
        return [fields for event, fields in self.told if event == name]


@tf.function(autograph=False)
def compute(x):
    return tf.reduce_sum(tf.matmul(x, x))


class Loop:
    """A training loop as the trainer has it."""

    def __init__(self, directory, *windows, **options):
        self.recorder = FakeRecorder()
        self.directory = directory
        self.capture = Capture(directory / "profile", self.recorder, windows, **options)
        self.began_ns = {}

    def run(self, first, last, work=lambda iteration: None):
        for iteration in range(first, last + 1):
            self.capture.before_step(iteration)
            self.began_ns[iteration] = self.capture.begin_step(iteration)
            compute(tf.ones((64, 64))).numpy()
            work(iteration)
            self.capture.end_step(iteration)
        return self

    def close(self):
        self.capture.close()
        return self

    @property
    def files(self):
        return [self.directory / fields["file"] for fields in self.recorder.of("profile_window")]

    def events(self, number=0):
        return read_events(self.files[number])

    def on_disk(self):
        return sorted(path for path in (self.directory / "profile").rglob("*") if path.is_file())


def steps_in(events):
    marks = [event for event in events if event.name == "train"]
    return {event.stats["step_num"]: event for event in marks}


def test_a_window_leaves_one_file_where_tensorboard_looks(tmp_path):
    loop = Loop(tmp_path, range(3, 6)).run(1, 8).close()
    (told,) = loop.recorder.of("profile_window")
    assert (told["window"], told["first"], told["last"]) == (1, 3, 5)
    assert loop.files == loop.on_disk()
    assert told["bytes"] == loop.files[0].stat().st_size
    assert told["start_ns"] > 0
    assert told["stop_ns"] > 0
    profile, plugins, name, folder, file = loop.files[0].relative_to(tmp_path).parts
    assert (profile, plugins, name) == ("profile", "plugins", "profile")
    assert folder.endswith("_p3_w001")
    assert file.endswith(".xplane.pb")


def test_each_traced_step_and_no_other_has_a_marker_with_our_clock(tmp_path):
    loop = Loop(tmp_path, range(3, 6)).run(1, 8).close()
    marks = steps_in(loop.events())
    assert {number: mark.stats["host_ns"] for number, mark in marks.items()} == {
        number: loop.began_ns[number] for number in (3, 4, 5)
    }
    assert all(mark.stats["_r"] == 1 for mark in marks.values())


def test_a_marker_covers_the_whole_step(tmp_path):
    def record(_):
        with span("recording"):
            pass

    events = Loop(tmp_path, range(2, 4)).run(1, 3, record).close().events()
    marks = steps_in(events)
    recorded = [event for event in events if event.name == "timesink:recording"]
    assert len(recorded) == 2
    for mark, record in zip((marks[2], marks[3]), recorded, strict=True):
        inside = [event for event in events if mark.begin_ps <= event.begin_ps < mark.end_ps]
        assert any(event.name.startswith("MatMul:") for event in inside)
        assert mark.begin_ps <= record.begin_ps <= record.end_ps <= mark.end_ps


def test_two_windows_in_one_second_are_two_files(tmp_path):
    loop = Loop(tmp_path, range(2, 3), range(4, 5)).run(1, 6).close()
    assert len(set(loop.files)) == 2
    assert [set(steps_in(loop.events(n))) for n in (0, 1)] == [{2}, {4}]


def test_files_back_to_back_miss_no_step(tmp_path):
    loop = Loop(tmp_path, range(2, 4), range(4, 6), range(6, 7)).run(1, 6).close()
    assert [set(steps_in(loop.events(n))) for n in range(3)] == [{2, 3}, {4, 5}, {6}]


def test_a_window_is_opened_and_closed_on_its_account(tmp_path):
    loop = Loop(tmp_path, range(2, 4)).run(1, 3)
    assert loop.recorder.accounts == ["profile", "steps"]
    loop.run(4, 6)
    assert loop.recorder.accounts == ["profile", "steps"] * 2


def test_a_window_that_is_open_at_the_end_is_kept(tmp_path):
    loop = Loop(tmp_path, range(2, 50)).run(1, 4).close()
    (told,) = loop.recorder.of("profile_window")
    assert (told["first"], told["last"]) == (2, 4)
    assert loop.recorder.accounts[-1] == "profile"


def test_a_step_that_was_not_ended_is_no_step_of_the_trace(tmp_path):
    loop = Loop(tmp_path, range(2, 50)).run(1, 3)
    loop.capture.before_step(4)
    loop.capture.begin_step(4)
    loop.close()
    assert set(steps_in(loop.events())) == {2, 3}
    assert loop.recorder.of("profile_window")[0]["last"] == 3


def test_a_window_without_a_step_leaves_nothing(tmp_path):
    loop = Loop(tmp_path, range(2, 50)).run(1, 1)
    loop.capture.before_step(2)
    loop.close()
    assert loop.on_disk() == []
    assert loop.recorder.told == []


def test_other_work_parts_a_window_into_two_files(tmp_path):
    loop = Loop(tmp_path, range(2, 6)).run(1, 3)
    loop.capture.interrupt()
    loop.run(4, 8).close()
    assert [set(steps_in(loop.events(n))) for n in (0, 1)] == [{2, 3}, {4, 5}]


def test_without_windows_nothing_is_made(tmp_path):
    loop = Loop(tmp_path, sample_ms=5.0).run(1, 3).close()
    assert list(tmp_path.iterdir()) == []
    assert (loop.recorder.told, loop.recorder.accounts) == ([], [])


def test_a_garbage_collection_is_a_span_of_the_thread_it_ran_on(tmp_path):
    def collect(iteration):
        if iteration == 2:
            gc.collect(2)
        if iteration == 3:
            thread = threading.Thread(target=gc.collect, args=(2,), name="other")
            thread.start()
            thread.join()

    events = Loop(tmp_path, range(2, 4)).run(1, 3, collect).close().events()
    marks = steps_in(events)
    spans = [event for event in events if event.name == "timesink:gc generation 2"]

    def inside(mark):
        return [s for s in spans if mark.begin_ps < s.begin_ps < s.end_ps < mark.end_ps]

    assert {span.thread for span in inside(marks[2])} == {marks[2].thread}
    assert {span.thread for span in inside(marks[3])} - {marks[3].thread}


def test_outside_a_window_nothing_listens(tmp_path):
    hooks, threads = list(gc.callbacks), threading.active_count()
    loop = Loop(tmp_path, range(2, 3), sample_ms=5.0).run(1, 2)
    assert len(gc.callbacks) == len(hooks) + 1
    assert threading.active_count() == threads + 1
    loop.run(3, 3)
    assert (gc.callbacks, threading.active_count()) == (hooks, threads)


def test_samples_say_where_python_was(tmp_path, monkeypatch):
    seen = threading.Event()
    mark = capture_module._mark_sample

    def mark_and_tell(place):
        mark(place)
        seen.set()

    monkeypatch.setattr(capture_module, "_mark_sample", mark_and_tell)
    loop = Loop(tmp_path, range(2, 3), sample_ms=0.5)
    loop.run(1, 2, lambda iteration: iteration == 1 or seen.wait(30)).close()
    samples = [event.name for event in loop.events() if event.name.startswith("timesink:sample ")]
    assert any("test_capture.py:" in name for name in samples), samples


def test_a_name_with_a_number_sign_stays_whole(tmp_path):
    def work(_):
        with span("callback My#1.on_batch_end"):
            pass

    events = Loop(tmp_path, range(2, 3)).run(1, 2, work).close().events()
    assert "timesink:callback My_1.on_batch_end" in {event.name for event in events}


def test_the_thread_pools_bookkeeping_is_left_out(tmp_path):
    events = Loop(tmp_path, range(2, 4)).run(1, 3).close().events()
    assert any(event.name.startswith("MatMul:") for event in events)
    assert not [event for event in events if event.name.startswith("ThreadpoolListener")]


def test_a_tensorflow_that_cannot_leave_it_out_is_traced_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(profiler, "_collector_setter", lambda: None)
    events = Loop(tmp_path, range(2, 4)).run(1, 3).close().events()
    assert set(steps_in(events)) == {2, 3}


def test_another_profiler_is_left_alone_and_training_goes_on_without(tmp_path):
    tf.profiler.experimental.start(str(tmp_path / "users"))
    try:
        loop = Loop(tmp_path, range(2, 3), range(4, 5)).run(1, 5).close()
    finally:
        tf.profiler.experimental.stop()
    assert loop.recorder.told == [
        ("profile_failed", {"reason": "another profiler is running in this process"})
    ]
    # Each window tried, because the other trace might have ended, and was given up after its steps.
    assert loop.recorder.accounts == ["profile", "steps"] * 4
    assert list((tmp_path / "profile").iterdir()) == []
    assert list((tmp_path / "users").rglob("*.xplane.pb"))


def test_a_full_disk_ends_the_traces_and_not_the_training(tmp_path, monkeypatch):
    def full(path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("timesink.files._sync", full)
    loop = Loop(tmp_path, range(2, 3), range(4, 5)).run(1, 5).close()
    ((event, fields),) = loop.recorder.told
    assert event == "profile_failed"
    assert "the disk is full" in fields["reason"]
    assert loop.recorder.accounts == ["profile", "steps"] * 2
    assert loop.on_disk() == []


def test_a_trace_that_would_take_the_last_room_of_the_disk_is_not_kept(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(profiler.shutil, "disk_usage", lambda path: usage)
    loop = Loop(tmp_path, range(2, 3), range(4, 5)).run(1, 5).close()
    ((event, fields),) = loop.recorder.told
    assert event == "profile_failed"
    assert "the disk is full" in fields["reason"]
    assert loop.on_disk() == []


def test_a_place_that_cannot_be_written_ends_the_traces_and_not_the_training(tmp_path):
    (tmp_path / "profile").write_text("in the way")
    loop = Loop(tmp_path, range(2, 3)).run(1, 3).close()
    ((event, fields),) = loop.recorder.told
    assert event == "profile_failed"
    assert "\n" not in fields["reason"]


def test_what_a_killed_process_was_writing_is_removed(tmp_path):
    Loop(tmp_path, range(2, 3)).run(1, 3).close()
    torn = tmp_path / "profile" / ".2026_01_01_00_00_00_p1_w001.tmp" / "plugins"
    torn.mkdir(parents=True)
    half = tmp_path / "profile" / "plugins" / "profile" / ".2026_p1_w001.1-ab.tmp"
    half.mkdir()
    loop = Loop(tmp_path, range(2, 3))
    assert [path.name for path in (tmp_path / "profile").iterdir()] == ["plugins"]
    assert not half.exists()
    assert len(loop.on_disk()) == 1
