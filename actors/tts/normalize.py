"""English text to words that can be looked up: numbers, money, dates, times, units, abbreviations and symbols.

A lexer: at each position the first rule that matches says how its slice of the text is spoken, so every spoken word
keeps the source it came from.  Punctuation that shapes prosody stays; markup, quotes and emoji are silent.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache

from actors.tts.spoken_numbers import (
    amount,
    cardinal,
    clock,
    decimal,
    digits,
    fraction,
    money,
    ordinal,
    plural,
    year,
)

PAUSES = ",.!?;:—…()"
"""Marks that are passed on to the voice."""

Say = Callable[[re.Match[str]], str | None]
"""How a match is spoken; None: the rule does not hold here after all."""


@dataclass(frozen=True)
class Token:
    """A slice of the text and the words spoken for it (letters, apostrophes, spaces and `PAUSES`)."""

    source: str
    spoken: str
    after_space: bool
    """Whether whitespace stood in front of it."""


@dataclass(frozen=True)
class Rule:
    pattern: re.Pattern[str]
    say: Say


_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_MONTH = r"(?P<month>(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?" + (
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?)"
)
_NUMBER = r"(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
_MAGNITUDES = {
    "k": "thousand", "m": "million", "mn": "million", "b": "billion", "bn": "billion",
    "tn": "trillion", "thousand": "thousand", "million": "million", "billion": "billion", "trillion": "trillion",
}  # fmt: skip
_UNITS = {
    "km/h": "kilometer per hour", "kph": "kilometer per hour", "mph": "mile per hour", "m/s": "meter per second",
    "km": "kilometer", "cm": "centimeter", "mm": "millimeter", "m": "meter", "mi": "mile", "ft": "foot",
    "yd": "yard", "kg": "kilogram", "mg": "milligram", "g": "gram", "lb": "pound", "lbs": "pound",
    "oz": "ounce", "l": "liter", "L": "liter", "ml": "milliliter", "mL": "milliliter", "gal": "gallon",
    "s": "second", "sec": "second", "secs": "second", "ms": "millisecond", "min": "minute", "mins": "minute",
    "h": "hour", "hr": "hour", "hrs": "hour", "Hz": "hertz", "kHz": "kilohertz", "MHz": "megahertz",
    "GHz": "gigahertz", "B": "byte", "KB": "kilobyte", "kB": "kilobyte", "MB": "megabyte", "GB": "gigabyte",
    "TB": "terabyte", "W": "watt", "kW": "kilowatt", "kWh": "kilowatt hour", "V": "volt", "°C": "degree Celsius",
    "°F": "degree Fahrenheit", "°": "degree", "º": "degree", "%": "percent", "‰": "per mille", "sq ft": "square foot",
    "m²": "square meter", "km²": "square kilometer", "m³": "cubic meter", "dB": "decibel", "bpm": "beat per minute",
    "fps": "frame per second", "px": "pixel", "kcal": "kilocalorie", "cal": "calorie",
}  # fmt: skip
_ABBREVIATIONS = {
    "mr.": "mister", "mrs.": "missis", "ms.": "miz", "dr.": "doctor", "prof.": "professor", "sr.": "senior",
    "jr.": "junior", "vs.": "versus", "vs": "versus", "e.g.": "for example,", "i.e.": "that is,",
    "approx.": "approximately", "dept.": "department", "inc.": "incorporated", "ltd.": "limited",
    "corp.": "corporation", "ave.": "avenue", "blvd.": "boulevard", "cf.": "compare", "etc.": "et cetera",
    "w/": "with", "w/o": "without",
}  # fmt: skip
_BEFORE_NAMES = {
    "Rev.": "reverend", "Gen.": "general", "Capt.": "captain", "Lt.": "lieutenant", "Sgt.": "sergeant",
    "Gov.": "governor", "Sen.": "senator", "Rep.": "representative", "Hon.": "honorable", "Mt.": "mount",
    "St.": "saint", "Mon.": "Monday", "Tue.": "Tuesday", "Tues.": "Tuesday", "Wed.": "Wednesday", "Thu.": "Thursday",
    "Thurs.": "Thursday", "Fri.": "Friday", "Sat.": "Saturday", "Sun.": "Sunday",
}  # fmt: skip
"""Only in front of a capital or a number: elsewhere they are words, or end a sentence."""
_BEFORE_NUMBERS = {
    "no.": "number", "nos.": "numbers", "fig.": "figure", "vol.": "volume", "ch.": "chapter", "pp.": "pages",
    "p.": "page", "est.": "established",
}  # fmt: skip
_SYMBOLS = {
    "&": "and", "+": "plus", "=": "equals", "@": "at", "%": "percent", "°": "degrees", "×": "times", "÷": "divided by",
    "±": "plus or minus", "≈": "about", "~": "about", "≠": "is not", "≤": "at most", "≥": "at least",
    "<": "less than", ">": "greater than", "→": "to", "⇒": "so", "√": "square root of", "∞": "infinity", "§": "section",
    "©": "copyright", "$": "dollars", "£": "pounds", "€": "euros", "¥": "yen", "₹": "rupees", "#": "number",
    "/": "slash", "\\": "backslash", "^": "to the power of", "−": "minus", "²": "squared", "³": "cubed",
    "½": "one half", "¼": "one quarter", "¾": "three quarters", "⅓": "one third", "⅔": "two thirds",
}  # fmt: skip
_KINGS = (
    "Henry|Louis|Elizabeth|Charles|George|James|Edward|Richard|William|Philip|Pius|Paul|Benedict|Napoleon"
)
_NUMBERED = "War|Chapter|Part|Phase|Act|Type|Volume|Section|Level|Class|Stage|Mark|Apollo|Final Fantasy|Rocky"
_ROMAN = {"I": 1, "V": 5, "X": 10}


def normalize(text: str) -> list[Token]:
    """How `text` is spoken, piece by piece, in its order.

    What is silent belongs to the source of the piece it touches, and is left out where it stands alone.
    """
    text = _plain(text)
    tokens: list[Token] = []
    position, after_space, silent = 0, True, ""
    while position < len(text):
        if text[position].isspace():
            position, after_space, silent = position + 1, True, ""
            continue
        end, spoken = _read(text, position)
        source = text[position:end]
        position = end
        if spoken:
            tokens.append(Token(silent + source, spoken, after_space))
            after_space, silent = False, ""
        elif after_space or not tokens:
            silent += source
        else:
            tokens[-1] = replace(tokens[-1], source=tokens[-1].source + source)
    return tokens


def _read(text: str, position: int) -> tuple[int, str]:
    """End of the slice that starts at `position`, and what is said for it (empty: silent)."""
    for rule in _rules():
        match = rule.pattern.match(text, position)
        if match is not None and match.end() > position:
            spoken = rule.say(match)
            if spoken is not None:
                return match.end(), spoken
    return position + 1, _symbol(text, position)


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFC", text).translate(_TYPOGRAPHY)
    text = re.sub(r"!?\[([^\]]+)\]\([^)\s]*\)", r"\1", text)
    text = re.sub(r"(?m)^\s*(?:#{1,6}|[-*+•]|>)\s+", "", text)
    return re.sub(r"\*+|`+|(?<!\w)_+|_+(?!\w)|~~+", "", text)


_TYPOGRAPHY = str.maketrans(
    {"’": "'", "‘": "'", "ʼ": "'", "`": "'", "“": '"', "”": '"', "«": '"', "»": '"', "‐": "-", "‑": "-", "\u00ad": "",
     "\u200b": "", "\ufeff": "", "\ufe0f": "", "。": ".", "，": ",", "？": "?", "！": "!", "、": ","}
)  # fmt: skip


def _symbol(text: str, position: int) -> str:
    char = text[position]
    if char in _SYMBOLS:
        return _SYMBOLS[char]
    if char in PAUSES:
        return char
    if char in "–-":
        around = text[position - 1 : position] + text[position + 1 : position + 2]
        return "—" if not around.strip() and position else ""
    if char.isdigit() or unicodedata.category(char) in ("Nd", "No", "Nl"):
        value = unicodedata.numeric(char, None)
        return cardinal(int(value)) if value is not None and value == int(value) else ""
    return ""


def _month(name: str) -> str:
    return next(month for month in _MONTHS if month.startswith(name.rstrip(".")[:3]))


def _date(match: re.Match[str]) -> str:
    found = match.groupdict()
    day = f" {ordinal(int(found['day']))}" if found.get("day") else ""
    years = f", {year(int(found['year']))}" if found.get("year") else ""
    return _month(found["month"]) + day + years


def _number_date(match: re.Match[str]) -> str | None:
    month, day = int(match["month"]), int(match["day"])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return f"{_MONTHS[month - 1]} {ordinal(day)}, {year(int(match['year']))}"


def _measure(match: re.Match[str]) -> str | None:
    unit = _UNITS[" ".join(match["unit"].split())]
    sign = "minus " if match["sign"] else ""
    return f"{sign}{decimal(match['number'])} {plural(unit, match['number'])}"


def _money(match: re.Match[str]) -> str:
    magnitude = match["magnitude"]
    sign = "minus " if match["sign"] else ""
    return sign + money(
        match["currency"], match["number"], _MAGNITUDES[magnitude.lower()] if magnitude else None
    )


def _phone(match: re.Match[str]) -> str:
    return ", ".join(digits(group) for group in re.findall(r"\d+", match[0]))


def _decade(match: re.Match[str]) -> str:
    spoken = year(int(match[1])) if len(match[1]) == 4 else cardinal(int(match[1]))
    return spoken[:-1] + "ies" if spoken.endswith("y") else spoken + "s"


def _address(match: re.Match[str]) -> str:
    text = re.sub(r"^https?://(www\.)?", "", match[0])
    tail = re.search(r"[.,!?;:)]+$", text)
    body = text[: tail.start()] if tail else text
    names = {".": " dot ", "/": " slash ", "@": " at ", "-": " dash ", "_": " underscore ", ":": " colon "}
    spoken = "".join(names.get(char, char if char.isalpha() else " ") for char in _digits_aside(body))
    return " ".join(spoken.split()) + (tail[0][:1] if tail else "")


def _digits_aside(text: str) -> str:
    return re.sub(r"\d+", lambda match: f" {digits(match[0])} ", text)


def _roman(numeral: str) -> int:
    values = [_ROMAN[char] for char in numeral]
    return sum(-v if v < max(values[i + 1 :], default=0) else v for i, v in enumerate(values))


def _abbreviation(match: re.Match[str]) -> str:
    return _ended(match, _ABBREVIATIONS[match[0].lower()])


def _ended(match: re.Match[str], spoken: str) -> str:
    """`spoken`, with the full stop that an abbreviation shares with the sentence it ends."""
    ends_text = not match.string[match.end() :].strip()
    return spoken + "." if ends_text and match[0].endswith(".") else spoken


def _initials(match: re.Match[str]) -> str:
    return _ended(match, " ".join(match[0].replace(".", " ").upper().split()))


def _range(match: re.Match[str]) -> str:
    first, last = match["first"], match["last"]
    both_years = len(first) == 4 == len(last) and first[0] in "12"
    return f"{year(int(first)) if both_years else decimal(first)} to {year(int(last)) if both_years else decimal(last)}"


def _version(match: re.Match[str]) -> str:
    return " point ".join(cardinal(int(part)) for part in match[0].split("."))


def _plain_number(match: re.Match[str]) -> str:
    sign = "minus " if match["sign"] else ""
    magnitude = match["magnitude"]
    return sign + amount(match["number"]) + (f" {_MAGNITUDES[magnitude.lower()]}" if magnitude else "")


def _any_of(words: Iterable[str]) -> str:
    """A pattern for any of `words`, longest first."""
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


@cache
def _rules() -> tuple[Rule, ...]:
    start = r"(?<![\w.])"
    units = _any_of(_UNITS)
    magnitude = r"(?:\s?(?P<magnitude>thousand|million|billion|trillion|bn|mn|tn|[kKmMbB])\b)?"
    table: tuple[tuple[str, Say], ...] = (
        (r"\S+@\w[\w-]*(?:\.\w+)+", _address),
        (r"https?://\S+", _address),
        (r"(?:www\.)?[A-Za-z][\w-]*\.(?:com|org|net|io|ai|dev|edu|gov|co\.uk|co)\b(?:/\S*)?", _address),
        (rf"(?P<sign>[-−])?(?P<currency>[$£€¥₹])\s?{_NUMBER}{magnitude}", _money),
        (r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})\b", _number_date),
        (r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})\b", _number_date),
        (_MONTH + r"\s(?P<day>\d{1,2})(?:st|nd|rd|th)?\b(?:,?\s(?P<year>[12]\d{3})\b)?(?![:.]\d)", _date),
        (r"(?P<day>\d{1,2})(?:st|nd|rd|th)?\s" + _MONTH + r"(?![a-z])(?:,?\s(?P<year>[12]\d{3})\b)?", _date),
        (_MONTH + r"\s(?P<year>[12]\d{3})\b", _date),
        (r"(?:\+?\d{1,3}[ -])?\(\d{3}\)\s?\d{3}-\d{4}\b|(?:\+?1-)?\d{3}-\d{3}-\d{4}\b|\d{3}-\d{4}\b", _phone),
        (r"(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\s?([AaPp])(?:\.[Mm]\.|[Mm]\b))?", clock),
        (r"(\d{1,2})()()\s?([AaPp])(?:\.[Mm]\.|[Mm]\b)", clock),
        (r"'?(\d0|[12]\d{2}0)'?s\b", _decade),
        (r"(\d{1,3}(?:,\d{3})+|\d+)(?:st|nd|rd|th)\b", lambda m: ordinal(int(m[1].replace(",", "")))),
        (r"(?P<first>\d+(?:\.\d+)?)\s?[-–]\s?(?P<last>\d+(?:\.\d+)?)(?![\w-])", _range),
        (r"(\d+)/(\d+)\b(?![/\d])", lambda m: fraction(int(m[1]), int(m[2]))),
        (r"\d+(?:\.\d+){2,}", _version),
        (rf"(?P<sign>(?<!\w)[-−])?{_NUMBER}[\s-]?(?P<unit>{units})(?![\w²³])", _measure),
        (rf"(?P<sign>(?<!\w)[-−])?{_NUMBER}{magnitude}", _plain_number),
        (rf"(?:{_any_of(_BEFORE_NAMES)})(?=,?\s[A-Z\d])", lambda m: _BEFORE_NAMES[m[0]]),
        (rf"(?i:{_any_of(_BEFORE_NUMBERS)})(?=\s?\d)", lambda m: _BEFORE_NUMBERS[m[0].lower()]),
        (rf"(?i:{_any_of(_ABBREVIATIONS)})(?!\w)", _abbreviation),
        (r"[Ss]t\.", lambda m: _ended(m, "street")),
        (r"(?:[A-Za-z]\.){2,}", _initials),
        (r"[A-HJ-Z]\.(?=\s[A-Z])", lambda m: m[0][0]),
        (r"#(?=\d)", lambda m: "number"),
        (r"#(?=\w)", lambda m: "hashtag"),
        (rf"({_KINGS})\s([IVX]+)\b", lambda m: f"{m[1]} the {ordinal(_roman(m[2]))}"),
        (rf"({_NUMBERED})\s([IVX]+)\b", lambda m: f"{m[1]} {cardinal(_roman(m[2]))}"),
        (r"and/or\b", lambda m: "and or"),
        (r"(?i:m+-h+m+|uh-huh)(?![\w-])", lambda m: m[0].lower().replace("-", "")),
        (r"[^\W\d_]+(?:'[^\W\d_]+)*", lambda m: m[0]),
        (r"\.{2,}", lambda m: "…"),
        (r"--+", lambda m: "—"),
        (r"([!?,.;:])[!?,.;:]*", lambda m: "?" if "?" in m[0] else m[1]),
    )  # fmt: skip
    unanchored = ("[^\\W", "\\.{2", "--", "([!?", "#", "(?P<sign>")
    return tuple(
        Rule(re.compile(pattern if pattern.startswith(unanchored) else start + pattern), say)
        for pattern, say in table
    )
