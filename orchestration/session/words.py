"""Words of a text; Chinese and Japanese are written without spaces, so there each character counts as one."""

from __future__ import annotations

import re

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
_PLAIN = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_WRITTEN = re.compile(rf"[{_UNSPACED}][^\w\s]*|[^\s{_UNSPACED}]+")


def plain_words(text: str) -> list[str]:
    """The words as they are compared: small letters, no marks."""
    return _PLAIN.findall(text.lower().replace("'", ""))


def word_ends(text: str) -> list[int]:
    """Where each word ends, the marks behind it included."""
    return [word.end() for word in _WRITTEN.finditer(text)]
