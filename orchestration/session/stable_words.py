"""Words of a growing transcript that are told as soon as they are stable, and never taken back."""

from __future__ import annotations

import re
from difflib import SequenceMatcher


class StableWords:
    """Feeds on transcripts of ever more of the same speech.

    A word is stable when two transcripts in a row agree on it and on all before it (letters and digits count, marks and
    capitals don't).  What was told concatenates to `told`, which ends as the final transcript does.
    """

    def __init__(self) -> None:
        self.told = ""
        self._told_words: list[str] = []
        self._before: list[str] = []

    def grow(self, text: str) -> str:
        """The next delta, after an interim transcript of all speech so far; empty: nothing new is stable."""
        words = text.split()
        plain = [_plain(word) for word in words]
        agreed = 0
        for mine, other in zip(plain, self._before, strict=False):
            if mine != other:
                break
            agreed += 1
        self._before = plain
        known = len(self._told_words)
        if agreed <= known or plain[:known] != self._told_words:
            return ""
        self._told_words = plain[:agreed]
        return self._tell(" ".join(words[known:agreed]))

    def finish(self, text: str) -> str:
        """The last delta: what the final transcript `text` says beyond what was told."""
        if not self.told:
            self.told = text
            return text
        words = text.split()
        return self._tell(" ".join(words[self._where_told_ends([_plain(word) for word in words]) :]))

    def _where_told_ends(self, plain: list[str]) -> int:
        """The word of the final transcript before which all was told, also where the two differ."""
        told = self._told_words
        blocks = SequenceMatcher(None, told, plain, autojunk=False).get_matching_blocks()
        last = max((block for block in blocks if block.size), key=lambda block: block.a, default=None)
        if last is None:
            return len(told)
        return last.b + len(told) - last.a

    def _tell(self, words: str) -> str:
        delta = f" {words}" if self.told and words else words
        self.told += delta
        return delta


def _plain(word: str) -> str:
    return "".join(re.findall(r"[^\W_]+", word.lower()))
