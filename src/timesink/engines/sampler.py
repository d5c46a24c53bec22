"""Where Python is: a thread that looks every few milliseconds at what the main thread runs."""

import sys
import sysconfig
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType, FrameType

import timesink

INSTALLED = ("site-packages", "dist-packages")
OWN = str(Path(timesink.__file__).parent) + "/"
LIBRARY = tuple({sysconfig.get_path(name) + "/" for name in ("stdlib", "platstdlib")})

TYPED = ("<stdin>", "<console>", "<python-input-", "<ipython-input-")
"""Code that its user typed; a notebook's stands in files of a folder `ipykernel_123`."""

MOST_PATIENCE = 8

Frames = Callable[[], Mapping[int, FrameType]]


class Places:
    """Names the place a stack stands at: `file.py:123 function`.

    The innermost frame of the user's own code; if there is none, the innermost outside Timesink;
    else Timesink's own. A name is never an absolute path: it may be shown to others.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = str(directory or Path.cwd()) + "/"
        self._files: dict[CodeType, tuple[str, bool, bool]] = {}
        self._places: dict[tuple[CodeType, int], str] = {}

    def of(self, innermost: FrameType) -> str:
        """Name the place of a stack."""
        found, foreign = innermost, False
        frame: FrameType | None = innermost
        while frame is not None:
            code = frame.f_code
            file = self._files.get(code)
            if file is None:
                file = self._files[code] = self._classify(code.co_filename)
            _, mine, outside = file
            if mine:
                found = frame
                break
            if outside and not foreign:
                found, foreign = frame, True
            frame = frame.f_back
        return self._name(found)

    def _name(self, frame: FrameType) -> str:
        code, line = frame.f_code, frame.f_lineno
        place = self._places.get((code, line))
        if place is None:
            place = f"{self._files[code][0]}:{line} {code.co_name}"
            # A file's name may be bytes that are no text.
            self._places[code, line] = place = place.encode(errors="replace").decode()
        return place

    def _classify(self, path: str) -> tuple[str, bool, bool]:
        """Give the name to show, whether it is the user's code, and whether to name it at all."""
        if path.startswith(TYPED):
            return path, True, True
        if "/ipykernel_" in path:
            return "notebook cell", True, True
        if path.startswith("<"):  # frozen, or made by a library: the launcher is no place
            return path, False, False
        for name in INSTALLED:
            _, found, inside = path.rpartition(f"/{name}/")
            if found:
                return inside, False, True
        if path.startswith(OWN):
            return f"timesink/{path.removeprefix(OWN)}", False, False
        for root in LIBRARY:
            if path.startswith(root):
                return path.removeprefix(root), False, True
        if path.startswith(self._directory):
            return path.removeprefix(self._directory), True, True
        return path.rpartition("/")[2], True, True


class Sampler:
    """Tells `emit` every `interval_ms` where the thread that made it is, until it is stopped.

    A thread found twice at one instruction is in a call that takes long, most often the step
    itself, whose cores each look disturbs (2 % of a step on two cores at 5 ms): it is looked at
    less and less often, down to an eighth, until it has moved.
    """

    def __init__(
        self,
        interval_ms: float,
        emit: Callable[[str], None],
        *,
        frames: Frames = sys._current_frames,
        places: Places | None = None,
    ) -> None:
        self._interval_s = interval_ms / 1e3
        self._emit, self._frames = emit, frames
        self._places = places or Places()
        self._watched = threading.get_ident()
        self._over = threading.Event()
        self._stood: tuple[int, int] | None = None
        self._patience = 1
        self._thread = threading.Thread(target=self._run, name="timesink-sampler", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; when this returns, nothing more is emitted."""
        self._over.set()
        self._thread.join()

    def look(self) -> None:
        """Look once."""
        frame = self._frames().get(self._watched)
        if frame is None:
            return
        stands = (id(frame), frame.f_lasti)
        self._patience = min(2 * self._patience, MOST_PATIENCE) if stands == self._stood else 1
        self._stood = stands
        self._emit(self._places.of(frame))

    @property
    def pause_s(self) -> float:
        """How long it waits before it looks again."""
        return self._interval_s * self._patience

    def _run(self) -> None:
        wait = self._over.wait
        while not wait(self.pause_s):
            self.look()
