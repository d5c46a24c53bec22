"""Time charged to accounts, so that they sum to the wall time to the nanosecond."""
