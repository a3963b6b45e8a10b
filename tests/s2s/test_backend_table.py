"""The documented table of backends is the one that the code makes."""

import tomllib
from pathlib import Path

from actors.registry import ENTRIES
from s2s.backend_table import backend_table

ROOT = Path(__file__).parents[2]


def test_the_docs_show_every_backend_as_the_registry_has_it() -> None:
    assert (
        (ROOT / "docs" / "backends.md").read_text("utf-8").endswith("<!-- backends -->\n" + backend_table())
    )


def test_every_extra_that_a_backend_names_is_in_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {entry.extra for entry in ENTRIES} - {None} <= set(project["optional-dependencies"])


def test_every_backend_tells_its_licence_and_how_it_was_tested() -> None:
    assert [entry.name for entry in ENTRIES if not entry.licence or entry.tested == "not at all"] == []


def test_devices_of_a_backend_are_those_that_it_says_itself() -> None:
    for entry in ENTRIES:
        if not entry.remote:
            own = entry.backend_class()(entry.options_class()()).capabilities.devices
            assert set(own) == set(entry.devices), entry.name
