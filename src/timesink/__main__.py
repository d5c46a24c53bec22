"""`python -m timesink` is the `timesink` command."""

from timesink.cli import main

main()
