"""Weights and test speech: where they come from, and where they lie on this machine."""

from actors.assets.asset import Asset, AssetError
from actors.assets.catalogue import CATALOGUE
from actors.assets.store import Status, cache_folder, pull, resolve, status

__all__ = ["CATALOGUE", "Asset", "AssetError", "Status", "cache_folder", "pull", "resolve", "status"]
