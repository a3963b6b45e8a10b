"""English graphemes to Kokoro's phonemes: misaki's lexicons, suffix rules, letter names, and spelling rules.

No part-of-speech tagger: a homograph is decided by the word in front of it.  Every word comes out as sound: one that
no lexicon has is taken apart, spelled, or sounded out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from actors.tts.lexicon import Lexicon, interjection
from actors.tts.normalize import PAUSES, Token, normalize
from actors.tts.spelling import VOWELS, british, plain_letters, sound_out

_PIECE = re.compile(rf"[^\W\d_]+(?:'[^\W\d_]+)*|[{re.escape(PAUSES)}]")
_CAMEL = re.compile(r"[A-Z]{2,}(?=[A-Z][a-z]|$)|[A-Z]?[a-z']+|[A-Z]+")
_TAPPED = "AIOWYiuæɑəɛɪɹʊʌ"
"""After these American English says t before a vowel as ɾ."""
_VERB_CUES = frozenset(
    [
        "to",
        "will",
        "would",
        "can",
        "could",
        "should",
        "must",
        "may",
        "might",
        "shall",
        "i",
        "you",
        "we",
        "they",
        "don't",
        "didn't",
        "doesn't",
        "won't",
        "can't",
        "let",
        "please",
        "who",
        "i'll",
        "you'll",
        "we'll",
        "they'll",
        "let's",
        "not",
    ]
)
_PARTICIPLE_CUES = frozenset(
    [
        "have",
        "has",
        "had",
        "having",
        "was",
        "were",
        "been",
        "be",
        "is",
        "are",
        "i've",
        "you've",
        "we've",
        "they've",
        "just",
    ]
)
_LETTER_WORDS = frozenset(
    [
        "IT",
        "US",
        "UK",
        "PM",
        "AM",
        "OR",
        "ID",
        "AI",
        "TV",
        "PC",
        "OS",
        "UN",
        "EU",
        "QA",
        "VR",
        "AR",
        "UI",
        "UX",
    ]
)
"""In capitals these are initials, though they look like words."""
_LONGEST_INITIALS = 5
_SHORTEST_PART = 4


class Unspeakable(ValueError):
    """Text in letters that an English voice cannot say."""


@dataclass(frozen=True)
class Span:
    """What is said for one stretch of the text that has no whitespace inside or is spoken as one thing."""

    source: str
    phonemes: str
    """Words parted by spaces, pause marks behind the word they follow."""


class Phonemizer:
    """One accent of English.  Not for two threads at once."""

    def __init__(self, accent: str) -> None:
        """`accent`: "us" or "gb". Reads the lexicon files (about 0.1 s, 40 MB)."""
        self._lexicon = Lexicon(accent)
        self._british = accent == "gb"

    def spans(self, text: str) -> list[Span]:
        """The phonemes of `text`.  Raises `Unspeakable`, naming the word, for letters of another script."""
        tokens = normalize(text)
        words = [
            (index, piece) for index, token in enumerate(tokens) for piece in _PIECE.findall(token.spoken)
        ]
        shouted = text.isupper() and len(words) > 1
        sounds: list[list[str]] = [[] for _ in tokens]
        following, mark = "", True
        for position in range(len(words) - 1, -1, -1):
            index, piece = words[position]
            if piece in PAUSES:
                sounds[index].insert(0, piece)
                mark = True
                continue
            before = words[position - 1][1] if position else ""
            context = Context(before, following, mark, shouted)
            said = self.word(piece, context)
            sounds[index].insert(0, said)
            following, mark = said, False
        return list(_joined(tokens, sounds))

    def word(self, word: str, context: Context) -> str:
        """Phonemes of one word (letters and apostrophes).  Raises `Unspeakable`."""
        for attempt in (self._interjection, self._function_word, self._listed):
            if (said := attempt(word, context)) is not None:
                return said
        if (said := self._initials(word)) is not None:
            return said
        if word != word.lower() and (said := self._listed(word.lower(), context)) is not None:
            return said
        letters = plain_letters(word)
        if letters is None:
            raise Unspeakable(f"{word!r} is not in the Latin alphabet and no English voice can say it")
        if letters != word.lower() and (said := self._listed(letters, context)) is not None:
            return said
        attempts = (
            (self._inflected, word.lower() if word.isascii() else letters),
            (self._camel_case, word),
            (self._compound, letters),
        )
        for attempt, source in attempts:
            if (said := attempt(source, context)) is not None:
                return said
        if not re.search("[aeiouy]", letters) and len(letters) <= _LONGEST_INITIALS:
            return self._letters(letters)
        sounds = sound_out(letters)
        return british(sounds) if self._british else sounds

    def _interjection(self, word: str, context: Context) -> str | None:
        if word.isupper() and not context.shouted:
            return None
        said = interjection(word.lower())
        return british(said) if said is not None and self._british else said

    def _function_word(self, word: str, context: Context) -> str | None:
        lower = word.lower()
        vowel_next = context.following.lstrip("ˈˌ")[:1] in tuple(VOWELS)
        if lower == "the":
            return "ði" if vowel_next and context.following else "ðə"
        if (
            lower == "a"
            and context.following
            and not context.before_pause
            and (word == "a" or not context.before)
        ):
            return "ɐ"
        if lower == "an" and not context.before_pause:
            return "ɐn"
        if lower == "to":
            return self._lexicon.default("to") if context.before_pause else ("tʊ" if vowel_next else "tə")
        if lower == "used" and context.following.startswith("t") and context.following in ("tə", "tʊ"):
            return self._lexicon.variant("used", "VBD")
        return "ˌI" if word in ("I", "i") and not context.before_pause else None

    def _listed(self, word: str, context: Context) -> str | None:
        if word.isupper() and len(word) > 1:
            if not context.shouted and (word in _LETTER_WORDS or self._lexicon.find(word) is None):
                lowered = None if word in _LETTER_WORDS else self._lexicon.find(word.lower())
                return self._pick(lowered, context) if lowered is not None else None
            word = word if self._lexicon.find(word) is not None else word.lower()
        for form in (word, word.lower(), word.capitalize()):
            if (entry := self._lexicon.find(form)) is not None:
                return self._pick(entry, context)
        return None

    def _pick(self, entry: str | dict[str, str], context: Context) -> str:
        """The pronunciation of a homograph that suits the word in front of it."""
        if isinstance(entry, str):
            return entry
        before = context.before.lower()
        if context.before_pause and "None" in entry:
            return entry["None"]
        if before in _PARTICIPLE_CUES and "VBN" in entry:
            return entry["VBN"]
        if before in _VERB_CUES and "VERB" in entry:
            return entry["VERB"]
        return entry["DEFAULT"]

    def _initials(self, word: str) -> str | None:
        """Capitals that are no word: NLP, GPUs, or a single letter."""
        stem, plural = (word[:-1], "z") if re.fullmatch(r"[A-Z]{2,}s", word) else (word, "")
        if re.fullmatch(r"[A-Z]{2,}'s", word):
            stem, plural = word[:-2], "z"
        if not (stem.isascii() and stem.isalpha()):
            return None
        if len(stem) == 1 or (stem.isupper() and len(stem) <= _LONGEST_INITIALS):
            return self._letters(stem) + plural
        return None

    def _letters(self, word: str) -> str:
        names = [self._lexicon.default(letter.upper()).replace("ˈ", "ˌ") for letter in word]
        return "".join(names[:-1]) + names[-1].replace("ˌ", "ˈ")

    def _inflected(self, word: str, context: Context) -> str | None:
        """A known word with an ending: 's, -s, -ed, -ing, 'd, 'll, 've, n't."""
        for ending, stems, join in _ENDINGS:
            if not word.endswith(ending) or len(word) - len(ending) < 2:
                continue
            for stem in stems(word[: -len(ending)]):
                if (said := self._listed(stem, context)) is not None:
                    return join(said, self._british)
                capital = (
                    self._initials(stem.upper()) if ending in ("'s", "'ll", "'d") and len(stem) < 3 else None
                )
                if capital is not None:
                    return join(capital, self._british)
        if word.endswith(("'s", "'ll", "'d", "'ve", "'re")):
            stem, _, ending = word.rpartition("'")
            return _JOINS["'" + ending](self.word(stem, context), self._british)
        return None

    def _camel_case(self, word: str, context: Context) -> str | None:
        parts = _CAMEL.findall(word)
        if len(parts) < 2 or "".join(parts) != word:
            return None
        return " ".join(self.word(part, context) for part in parts)

    def _compound(self, word: str, context: Context) -> str | None:
        """Two known words written as one; the first carries the stress."""
        for cut in range(len(word) - _SHORTEST_PART, _SHORTEST_PART - 1, -1):
            first, second = self._lexicon.find(word[:cut]), self._lexicon.find(word[cut:])
            if first is not None and second is not None:
                return self._pick(first, context) + self._pick(second, context).replace("ˈ", "ˌ")
        return None


@dataclass(frozen=True)
class Context:
    """What stands around a word."""

    before: str = ""
    """The word or mark in front, as written."""
    following: str = ""
    """Phonemes of the next word, beyond marks too; empty at the end."""
    before_pause: bool = True
    """Whether the next thing is a mark or the end."""
    shouted: bool = False
    """Whether the whole text is in capitals, so that capitals mean nothing."""


def _joined(tokens: list[Token], sounds: list[list[str]]) -> Iterator[Span]:
    """Tokens that stand together without whitespace become one span."""
    source, said = "", ""
    for token, pieces in zip(tokens, sounds, strict=True):
        if token.after_space and source:
            yield Span(source, said)
            source, said = "", ""
        source += token.source
        for piece in pieces:
            said += piece if piece in PAUSES or not said else " " + piece
    if source:
        yield Span(source, said)


def _with_s(stem: str, british: bool) -> str:
    if stem[-1] in "szʃʒʧʤ":
        return stem + ("ɪz" if british else "ᵻz")
    return stem + ("s" if stem[-1] in "ptkfθ" else "z")


def _with_ed(stem: str, british: bool) -> str:
    if stem[-1] not in "td":
        return stem + ("t" if stem[-1] in "pkfθʃsʧ" else "d")
    if british:
        return stem + "ɪd"
    tapped = stem[-1] == "t" and stem[-2:-1] in tuple(_TAPPED)
    return (stem[:-1] + "ɾ" if tapped else stem) + "ᵻd"


def _with_ing(stem: str, british: bool) -> str:
    if not british and stem[-1] == "t" and stem[-2:-1] in tuple(_TAPPED):
        return stem[:-1] + "ɾɪŋ"
    linking = "ɹ" if british and stem[-1] in "əː" and not stem.endswith(("iː", "uː")) else ""
    return stem + linking + "ɪŋ"


def _as_it_is(stem: str) -> tuple[str, ...]:
    return (stem,)


def _of_s(stem: str) -> tuple[str, ...]:
    return (stem,) if not stem.endswith("s") else ()


def _of_es(stem: str) -> tuple[str, ...]:
    return (stem[:-1] + "y",) if stem.endswith("i") else (stem,)


def _of_verb(stem: str) -> tuple[str, ...]:
    doubled = (stem[:-1],) if stem[-1:] == stem[-2:-1] else ()
    return (stem, stem + "e", *doubled, *((stem[:-1] + "y",) if stem.endswith("i") else ()))


Join = Callable[[str, bool], str]
_JOINS: dict[str, Join] = {
    "'s": _with_s,
    "'d": _with_ed,
    "'ll": lambda stem, _: stem + "əl",
    "'ve": lambda stem, _: stem + "əv",
    "'re": lambda stem, _: stem + "əɹ",
}
_ENDINGS: tuple[tuple[str, Callable[[str], tuple[str, ...]], Join], ...] = (
    *((ending, _as_it_is, join) for ending, join in _JOINS.items()),
    ("n't", _as_it_is, lambda stem, _: stem + "ᵊnt"),
    ("s", _of_s, _with_s),
    ("es", _of_es, _with_s),
    ("ed", _of_verb, _with_ed),
    ("ing", _of_verb, _with_ing),
)
