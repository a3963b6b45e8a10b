"""The catalogue is whole: pins are complete, every model has a hub source, converters and parts exist."""

import re

import pytest

from actors.assets import CATALOGUE, store
from actors.assets.asset import Asset, Converted, Hub, Packaged
from actors.assets.catalogue import KOKORO_VOICES

ASSETS = list(CATALOGUE.values())
RECORDINGS = {"moonshine-recordings", "pocketsphinx-recordings", "speech-samples", "speech-question"}


@pytest.mark.parametrize("asset", ASSETS, ids=lambda asset: asset.name)
def test_pins_are_complete(asset: Asset) -> None:
    for source in asset.sources:
        if isinstance(source, Packaged):
            for package in source.packages:
                assert re.fullmatch(r"[0-9a-f]{64}", package.sha256)
                assert package.size_bytes > 1_000
            for file in source.files:
                assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
                assert file.parts


@pytest.mark.parametrize("asset", ASSETS, ids=lambda asset: asset.name)
def test_every_model_can_be_had_from_the_hub_too(asset: Asset) -> None:
    if asset.name not in RECORDINGS:
        assert isinstance(asset.sources[-1], Hub)


@pytest.mark.parametrize("asset", ASSETS, ids=lambda asset: asset.name)
def test_every_asset_states_its_licence(asset: Asset) -> None:
    assert asset.licence


def test_conversions_use_known_assets_and_converters() -> None:
    for asset in ASSETS:
        for source in asset.sources:
            if isinstance(source, Converted):
                assert set(source.assets) <= set(CATALOGUE)
                assert source.converter in store._CONVERTERS
            if isinstance(source, Hub) and source.converter:
                assert source.converter in store._CONVERTERS


def test_a_hub_id_stands_for_one_asset_only() -> None:
    aliases = [alias for asset in ASSETS for alias in asset.aliases]
    assert len(aliases) == len(set(aliases))


def test_there_are_54_voices() -> None:
    assert len(set(KOKORO_VOICES)) == 54


def test_fingerprints_differ_with_the_content() -> None:
    assert len({asset.fingerprint for asset in ASSETS}) == len(ASSETS)
