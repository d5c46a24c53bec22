"""One run from start to end: directory, journal, the process that trains, its supervisor."""
