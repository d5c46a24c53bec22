"""Images on disk: generated, found in a folder, imported, measured and verified; no framework."""
