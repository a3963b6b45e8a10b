"""The documented table of events is the one that the code makes."""

from pathlib import Path

from s2s.realtime.table import events_table

DOCS = Path(__file__).parents[2] / "docs" / "realtime.md"


def test_the_docs_show_every_event_as_the_code_has_it() -> None:
    assert DOCS.read_text("utf-8").endswith("<!-- events -->\n" + events_table())
