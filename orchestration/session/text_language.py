"""The language of a written text: by its script, and in Latin script by the small words that only one language has.

It is certain or silent: a clause of names or of one word has no language of its own, and keeps what was known before.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_WIDE_WEIGHT = 3
"""A CJK character says as much as three letters."""
_FEW, _FEW_SHARE, _LEAST_SHARE = 3, 0.3, 0.15
"""Small words that a text must have of a language, at least, as a share of its words: more where they are few."""
_CAPITALS = frozenset(("I", "I'm", "I'll", "Sie", "Ihnen"))
"""Small words written large; others are names, such as Van and Da, or begin the text."""
_MARGIN = 1.5
"""How many times more of them a language must have than any other."""

_BY_SCRIPT = {
    "HIRAGANA": ("ja",),
    "KATAKANA": ("ja",),
    "HANGUL": ("ko",),
    "CJK": ("zh", "ja", "yue"),
    "CYRILLIC": ("ru", "uk", "be", "bg", "sr", "mk", "kk", "mn", "tg", "tt", "ba"),
    "ARABIC": ("ar", "fa", "ur", "ps", "sd"),
    "DEVANAGARI": ("hi", "mr", "ne", "sa"),
    "GREEK": ("el",),
    "HEBREW": ("he", "yi"),
    "THAI": ("th",),
    "LAO": ("lo",),
    "KHMER": ("km",),
    "MYANMAR": ("my",),
    "TIBETAN": ("bo",),
    "GEORGIAN": ("ka",),
    "ARMENIAN": ("hy",),
    "ETHIOPIC": ("am",),
    "BENGALI": ("bn", "as"),
    "TAMIL": ("ta",),
    "TELUGU": ("te",),
    "KANNADA": ("kn",),
    "MALAYALAM": ("ml",),
    "GUJARATI": ("gu",),
    "GURMUKHI": ("pa",),
    "SINHALA": ("si",),
}
"""Languages of a script, the most usual first; no language is in two but by these."""
_LATIN = "LATIN"
_CHINESE = frozenset("的是我你他她们們这這那吗嗎呢了在不很")
"""Small words that no Japanese text has without kana beside them."""

_SMALL_WORDS = {
    "en": "the and is are was were you your of that this it it's i'm i'll you're what how can could would will with "
    "have has from they there here my we our which who when about be been but if not do does don't let's a an i in "
    "on at to for as no so or me by he she his her all any than then go us",
    "de": "und ist sind der das ein eine nicht ich du sie wir es ihr mit für auf von zu zum wie was kann können dass "
    "auch aber oder wenn haben wird bin bei noch nur sehr heute ihnen dir mir",
    "fr": "le la les de une et est sont je vous nous il elle que qui dans pour pas avec sur ce cette c'est j'ai mais "
    "ou où très bien aussi peut plus quoi comment l'on d'un d'une votre mon être avoir aujourd'hui",
    "es": "el la de los las es son estoy está yo usted nosotros ella qué que en para con una un por pero muy también "
    "puede puedo como cómo más del al hoy su mi lo te hay",
    "it": "il la gli è sono io lei noi che di in per con una un non ma molto anche può posso come più della nel oggi "
    "suo mio questo questa ti cosa",
    "pt": "os as de são estou está eu você nós ela que em para com uma um não por mas muito também pode posso como "
    "mais do da no na hoje seu meu isso te",
    "nl": "de het een en is zijn ik jij je wij we niet met voor op van dat dit wat hoe kan kunnen maar ook als heb "
    "heeft nog zeer vandaag er naar",
    "pl": "jest są nie się na do to co jak ja ty pan pani czy ale też może mogę dla bardzo dzisiaj jestem już",
    "sv": "och är det en ett jag du vi inte med för på av att som vad hur kan men också om har mycket idag här den",
    "da": "og er det en et jeg du vi ikke med for på af at som hvad hvordan kan men også hvis har meget dag her den",
    "no": "og er det en et jeg du vi ikke med for på av at som hva hvordan kan men også hvis har mye dag her den",
    "tr": "ve bir bu ne ben sen siz biz değil için ile nasıl çok da de var yok ama mı mi olarak daha bugün",
    "id": "dan yang di ke dari ini itu saya anda kami kita tidak dengan untuk apa bagaimana bisa adalah ada juga akan",
    "vi": "và là của có không tôi bạn một những các này cho với được trong để như thế nào gì rất",
}
_LANGUAGES_OF: dict[str, list[str]] = {}
for _code, _words in _SMALL_WORDS.items():
    for _word in _words.split():
        _LANGUAGES_OF.setdefault(_word, []).append(_code)


_MARKS = {
    "ñ": ("es",), "¿": ("es",), "¡": ("es",), "ß": ("de",), "ä": ("de", "sv"), "ö": ("de", "sv", "tr"),
    "ü": ("de", "tr"), "å": ("sv", "da", "no"), "ø": ("da", "no"), "æ": ("da", "no"), "ã": ("pt", "vi"),
    "õ": ("pt", "vi"), "ê": ("fr", "pt", "vi"), "à": ("fr", "it"), "è": ("fr", "it"), "ù": ("fr", "it"),
    "ò": ("it",), "ì": ("it",), "ç": ("fr", "pt", "tr"), "î": ("fr",), "û": ("fr",), "œ": ("fr",), "ł": ("pl",),
    "ą": ("pl",), "ę": ("pl",), "ś": ("pl",), "ż": ("pl",), "ź": ("pl",), "ć": ("pl",), "ğ": ("tr",),
    "ı": ("tr",), "ş": ("tr",), "í": ("es", "pt"), "á": ("es", "pt"), "ú": ("es", "pt"), "ó": ("es", "pt", "pl"),
    "đ": ("vi",), "ơ": ("vi",), "ư": ("vi",),
}  # fmt: skip
"""Marked letters, and whose they are: one counts as a small word."""


class TextLanguage:
    """The language of one text, piece by piece."""

    def __init__(self, expected: str | None) -> None:
        """`expected`: what holds while the text does not say; ISO 639-1, None: not known."""
        self._language = expected

    def of(self, piece: str) -> str | None:
        """The language of the next piece."""
        self._language = text_language(piece, self._language) or self._language
        return self._language


def text_language(text: str, expected: str | None = None) -> str | None:
    """ISO 639-1 code of the language of `text`, where it is certain; `expected` is preferred among those that it may
    be."""
    script = _script(text)
    if script is None:
        return None
    if script != _LATIN:
        codes = _BY_SCRIPT[script]
        if script == "CJK" and len(_CHINESE & set(text)) > 1 and expected != "yue":
            return "zh"
        return expected if expected in codes else codes[0]
    words = [word.replace("’", "'") for word in _WORD.findall(text)]
    small = {
        word.lower() for at, word in enumerate(words) if at == 0 or word[0].islower() or word in _CAPITALS
    }
    counts = Counter(code for word in small for code in _LANGUAGES_OF.get(word, ()))
    marks = {mark for word in words if word[0].islower() for mark in word} | ({"¿", "¡"} & set(text))
    counts.update(code for mark in marks for code in _MARKS.get(mark, ()))
    if not counts:
        return None
    best = max(counts.values())
    share = _FEW_SHARE if best < _FEW else _LEAST_SHARE
    if best < max(2, len(words) * share):
        return None
    likely = [code for code, count in counts.items() if count * _MARGIN > best]
    if expected in likely:
        return expected
    return likely[0] if len(likely) == 1 else None


def _script(text: str) -> str | None:
    """The script of most of `text`; None: not known, or no letters."""
    weights: Counter[str] = Counter()
    for char in text:
        if char.isalpha():
            script = _LATIN if char.isascii() else _script_of(char)
            weights[script] += _WIDE_WEIGHT if script in ("CJK", "HIRAGANA", "KATAKANA", "HANGUL") else 1
    if weights["HIRAGANA"] or weights["KATAKANA"]:
        kana = weights.pop("HIRAGANA", 0) + weights.pop("KATAKANA", 0)
        weights["HIRAGANA"] = kana + weights.pop("CJK", 0)  # Japanese is written in all three
    if not weights:
        return None
    script, weight = weights.most_common(1)[0]
    known = script == _LATIN or script in _BY_SCRIPT
    return script if known and weight * 2 > weights.total() else None


def _script_of(char: str) -> str:
    """The first word of its Unicode name."""
    return unicodedata.name(char, "").partition(" ")[0].partition("-")[0]
