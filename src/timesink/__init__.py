"""Timesink shows where every millisecond of training an image classifier goes."""

__version__ = "0.1.0"
