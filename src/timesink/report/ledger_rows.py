"""The ledger as a page lists it: summary.json's accounts in; a group a layer or account out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from timesink.ledger.levels import shown_as
from timesink.ledger.opmap import LAYER
from timesink.report.accounts import MEANING
from timesink.report.sink import BETWEEN

Row = Mapping[str, Any]

PHASES = ("forward", "backward", "update")


@dataclass
class LedgerRow:
    """A line of the table, in milliseconds a step."""

    name: str
    meaning: str = ""
    ms: float = 0.0
    share: float = 0.0
    estimated: bool = False
    is_layer: bool = False
    phases: dict[str, float] = field(default_factory=dict)
    places: list["LedgerRow"] = field(default_factory=list)
    """What an account consists of, where that is known."""

    def add(self, row: Row, devices: int) -> None:
        """Count a row of the ledger in, as the mean of the devices."""
        ms = row["charged_ms"] / devices
        self.ms += ms
        self.share += row["share"] / devices
        self.estimated |= bool(row.get("estimated"))
        if self.is_layer:
            phase = row["phase"] or "forward"
            self.phases[phase] = self.phases.get(phase, 0.0) + ms


def ledger_rows(
    accounts: Iterable[Row], groups: Mapping[str, Sequence[str]] | None = None
) -> list[LedgerRow]:
    """Give the layers and the accounts that are none, the longest first."""
    rows = list(accounts)
    devices = max(len({row["device"] for row in rows}), 1)
    found: dict[tuple[bool, str], LedgerRow] = {}
    places: dict[tuple[str, str], LedgerRow] = {}
    for row in rows:
        is_layer, account = row["account"] == LAYER, row["account"]
        name = account
        if is_layer:
            name = shown_as(row["layer"], row["phase"], depth=None, groups=groups or {})
        meaning = "" if is_layer else MEANING.get(account, "")
        new = LedgerRow(name, meaning, is_layer=is_layer)
        found.setdefault((is_layer, name), new).add(row, devices)
        if not is_layer and (account == "python" or row["place"]):
            place = row["place"] or BETWEEN
            places.setdefault((account, place), LedgerRow(place)).add(row, devices)
    for (account, _), place_row in places.items():
        found[False, account].places.append(place_row)
    for each in found.values():
        each.places.sort(key=lambda place: -place.ms)
    return sorted(found.values(), key=lambda each: -each.ms)
