"""The pronunciation lexicons that the misaki package carries (Apache-2.0), read as data; and what they lack."""

from __future__ import annotations

import importlib.resources
import json
import re

ACCENTS = ("us", "gb")
_INTERJECTIONS = tuple(
    (re.compile(written), said)
    for written, said in (
        ("m+h+m+|uhhuh", "ʌhˈʌː"),
        ("mm+|h+m+", "ˈmm"),
        ("h+m+ph+", "hˈʌmf"),
        ("ugh+", "ˈʌɡ"),
        ("shh+", "ʃː"),
        ("brr+", "bˈɜɹ"),
        ("grr+", "ɡˈɜɹ"),
        ("tsk", "tˈɪsk"),
    )
)
"""Sounds that are written as they are made, in American phonemes.  Taken by ear: Kokoro cannot say what it was not
taught to read (a nod with closed lips is heard as "Mayhem" or "I'm home"), so each is the nearest that it can."""


class Lexicon:
    """Words of one accent: the checked list first, the larger derived one after it."""

    def __init__(self, accent: str) -> None:
        """`accent`: one of `ACCENTS`."""
        data = importlib.resources.files("misaki") / "data"
        self._checked: dict[str, str | dict[str, str | None]] = json.loads(
            (data / f"{accent}_gold.json").read_text("utf-8")
        )
        self._derived: dict[str, str] = json.loads((data / f"{accent}_silver.json").read_text("utf-8"))

    def find(self, word: str) -> str | dict[str, str] | None:
        """Phonemes of exactly `word`, or of its variants by part of speech ("DEFAULT" always among them)."""
        entry = self._checked.get(word)
        if isinstance(entry, dict):
            known = {kind: phonemes for kind, phonemes in entry.items() if phonemes}
            return known if "DEFAULT" in known else next(iter(known.values()), None)
        return entry or self._derived.get(word)

    def default(self, word: str) -> str:
        """Phonemes of a word that the lexicon must have; raises `KeyError`."""
        return self.variant(word, "DEFAULT")

    def variant(self, word: str, kind: str) -> str:
        entry = self.find(word)
        if entry is None:
            raise KeyError(word)
        return entry if isinstance(entry, str) else entry.get(kind, entry["DEFAULT"])

    def phonemes(self) -> set[str]:
        """Every character that an entry may contain."""
        used: set[str] = set().union(*self._derived.values())
        for entry in self._checked.values():
            for phonemes in (entry,) if isinstance(entry, str) else entry.values():
                used.update(phonemes or "")
        return used


def interjection(word: str) -> str | None:
    """How a sound that people make (mm, shh, brr, however long) is said; None for any other word.

    `word`: in lower case, without hyphens.
    """
    return next((said for written, said in _INTERJECTIONS if written.fullmatch(word)), None)
