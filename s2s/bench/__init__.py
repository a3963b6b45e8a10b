"""Measurements, and the bounds that they are held to."""
