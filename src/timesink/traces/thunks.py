"""Compiled instructions that end elsewhere: their launches and their ends, brought together.

XLA on the CPU runs its thunks asynchronously. The event named by the instruction may last only as
long as the launch took; an event `end: <instruction>`, perhaps on another thread, says when the
work was done. The launch carries an id as a producer, the end the same id as a consumer.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable

from timesink.traces.table import Table

_Key = tuple[str, Hashable]


class Thunks:
    """The instructions of a plane that are waiting for their end."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._launches: defaultdict[_Key, list[int]] = defaultdict(list)
        self._ends: defaultdict[_Key, list[int]] = defaultdict(list)

    def launch(self, instruction: str, ident: Hashable, row: int) -> None:
        """Note an instruction that the table holds in this row."""
        self._launches[instruction, ident].append(row)

    def end(self, instruction: str, ident: Hashable, end_ns: int) -> None:
        """Note when an instruction was done."""
        self._ends[instruction, ident].append(end_ns)

    def settle(self) -> None:
        """Let each launched instruction last until its end: the next of its name and id.

        An end after the next launch of the same name and id is that one's. Where there is none,
        the event keeps its own. An event that did the work itself outlasts its end by a little.
        How long the launch took stays as the row's number.
        """
        begins = self._table.begin_ns
        for key, rows in self._launches.items():
            ends = sorted(self._ends.get(key, ()))
            rows.sort(key=begins.__getitem__)
            for row, following in zip(rows, [*rows[1:], None], strict=True):
                place = bisect_left(ends, begins[row])
                if place == len(ends) or (
                    following is not None and ends[place] > begins[following]
                ):
                    continue
                if ends[place] > self._table.end_ns[row]:
                    self._table.number[row] = self._table.end_ns[row] - begins[row]
                    self._table.end_ns[row] = ends[place]
