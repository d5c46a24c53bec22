"""The seeds' figures made again: measurements in, figures with what both sides say out."""
