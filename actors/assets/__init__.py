"""Weights and test speech: where they come from, and where they lie on this machine."""

from actors.assets.asset import Asset, AssetError
from actors.assets.catalogue import CATALOGUE
from actors.assets.speech import QUESTION_TEXT, Sample, question, samples
from actors.assets.store import Status, cache_folder, find, here, present, pull, resolve, status

__all__ = [
    "CATALOGUE",
    "QUESTION_TEXT",
    "Asset",
    "AssetError",
    "Sample",
    "Status",
    "cache_folder",
    "find",
    "here",
    "present",
    "pull",
    "question",
    "resolve",
    "samples",
    "status",
]
