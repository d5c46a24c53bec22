"""The stats of a plane's events: which of them stands for what, and their values."""

from collections.abc import Iterable
from typing import Any

from timesink.traces.messages import text


class Stats:
    """The stats of one plane that somebody asks for."""

    def __init__(self, plane: Any, wanted: Iterable[str]) -> None:
        self._texts = {entry.key: text(entry.value.name) for entry in plane.stat_metadata}
        wanted = frozenset(wanted)
        self._wanted = {key: name for key, name in self._texts.items() if name in wanted}
        self._places: dict[tuple[int, int], list[tuple[int, int, str]]] = {}

    def __bool__(self) -> bool:
        """Whether any event of the plane can have one."""
        return bool(self._wanted)

    def read(self, stats: Any) -> dict[str, Any]:
        """Read the wanted ones, by name, off an event or its metadata."""
        return {name: self._value(stats[place]) for place, _, name in self._find(stats)}

    def read_alike(self, stats: Any) -> dict[str, Any]:
        """Read the wanted ones off one of many events that the same line of code wrote.

        Such an event has a dozen stats, and each costs a Python object to look at: those with as
        many, and the same last one, have them in the same places.
        """
        count = len(stats)
        if not count:
            return {}
        last = stats[count - 1]
        shape = count, last.metadata_id
        places = self._places.get(shape)
        if places is None:
            places = self._places[shape] = self._find(stats)
        found = {}
        for place, key, name in places:
            stat = stats[place] if place < count - 1 else last
            if stat.metadata_id != key:
                return self.read(stats)
            # Nearly all texts are references; asking which field is set costs as much again.
            reference = stat.ref_value
            found[name] = self._texts.get(reference, "") if reference else self._value(stat)
        return found

    def _find(self, stats: Any) -> list[tuple[int, int, str]]:
        """Give the wanted ones' places, keys and names."""
        keys = [stat.metadata_id for stat in stats]
        wanted = self._wanted
        return [(place, key, wanted[key]) for place, key in enumerate(keys) if key in wanted]

    def _value(self, stat: Any) -> Any:
        field = stat.WhichOneof("value")
        if field is None:
            return 0
        value = getattr(stat, field)
        if field == "str_value":
            return text(value)
        if field == "ref_value":
            # A text that many events share is kept once, as the name of a stat.
            return self._texts.get(value, "")
        return value


def as_int(value: Any) -> int | None:
    """Read a number, also one that was written as text; None where it is none."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None
