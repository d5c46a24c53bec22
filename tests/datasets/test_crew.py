"""Workers that share out jobs, and lose the place they work at."""

import threading

import pytest

from timesink.datasets.remotes.crew import Crew, Lost
from timesink.datasets.remotes.remote import Unreachable


class Place:
    """A connection that says when it was closed."""

    root_identity = None

    def __init__(self) -> None:
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()


def test_what_a_worker_finishes_while_another_loses_the_place_is_still_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("timesink.datasets.remotes.crew.RECONNECT_AFTER_S", ())
    at_work = threading.Event()

    def work(place: Place, job: str) -> str:
        if job == "first":
            return "came"
        if job == "lost":
            assert at_work.wait(60)
            raise Unreachable("nobody answers")
        at_work.set()
        # The last bytes are here already: being cut off does not undo that.
        assert place.closed.wait(60)
        return "came"

    crew = Crew(Place)  # type: ignore[arg-type]
    assert list(crew.each(["first"], work)) == [("first", "came")]  # type: ignore[arg-type]
    came = []
    with pytest.raises(Lost, match="nobody answers"):
        for job, result in crew.each(["slow", "lost"], work):  # type: ignore[arg-type]
            came.append((job, result))
    assert came == [("slow", "came")]
