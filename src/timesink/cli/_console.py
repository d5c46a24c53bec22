"""The two consoles: answers go to stdout, everything said on the way to stderr."""

import json
import sys
from typing import Any

from rich.console import Console

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """Print one object on stdout, and nothing else there."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def next_command(command: str) -> None:
    """Say what to type next."""
    err.print(f"\n[bold]Next:[/bold] [cyan]{command}[/cyan]", soft_wrap=True)
