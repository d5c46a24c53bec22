"""The input pipeline as a plain value: ordered stages and the order of images; no framework."""
