"""Verdicts on measured times: what the tool itself cost, and what changed between runs."""
