"""Many measurements and what they say together: a grid of cells, measured one by one, resumable."""
