"""Traces: a profiler's file, read into one table of events.

A file goes `xplane.py` → `host.py` or `gpu.py` for each of its planes → `table.py` → `events.py`;
`naming.py` says what an event's name tells, `hlo.py` what XLA's instructions were made of.
"""
