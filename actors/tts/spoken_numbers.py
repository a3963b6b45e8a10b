"""Numbers, money and clock times as English words."""

from __future__ import annotations

import re
from decimal import Decimal

_CURRENCIES = {
    "$": ("dollar", "cent"),
    "£": ("pound", "penny"),
    "€": ("euro", "cent"),
    "¥": ("yen", ""),
    "₹": ("rupee", "paisa"),
}
_IRREGULAR = {
    "foot": "feet",
    "inch": "inches",
    "penny": "pence",
    "yen": "yen",
    "hertz": "hertz",
    "paisa": "paise",
}
_LONGEST_READ_DIGITS = 12
"""A longer row of digits is an identifier, read digit by digit."""


def cardinal(value: int) -> str:
    """`value` in words, without commas or hyphens: they would be heard as pauses."""
    return _words(value, "cardinal")


def ordinal(value: int) -> str:
    return _words(value, "ordinal")


def year(value: int) -> str:
    """A year as it is read out: 1984 in two halves, 2005 whole."""
    return _words(value, "year") if value >= 1000 else cardinal(value)


def digits(text: str) -> str:
    """Digit by digit; other characters are passed over."""
    return " ".join(cardinal(int(char)) for char in text if char.isdigit())


def decimal(text: str) -> str:
    """A written number ("1,234.50", ".5"), the fraction digit by digit."""
    whole, _, after = text.replace(",", "").partition(".")
    if len(whole) > _LONGEST_READ_DIGITS or (len(whole) > 1 and whole.startswith("0")):
        spoken = digits(whole)
    else:
        spoken = cardinal(int(whole or "0"))
    return f"{spoken} point {digits(after)}" if after else spoken


def amount(text: str) -> str:
    """A bare number: four digits without a comma between 1100 and 2099 are a year."""
    if re.fullmatch(r"1[1-9]\d\d|20\d\d", text):
        return year(int(text))
    return decimal(text)


def plural(unit: str, number: str) -> str:
    """`unit` ("meter", "degree Celsius") as it follows `number`."""
    if Decimal(number.replace(",", "")) == 1 or unit in ("percent", "per mille"):
        return unit
    head, of, tail = unit.partition(" per ")
    if head == "degree" or head.startswith("degree "):
        return "degrees" + head.removeprefix("degree")
    first, _, last = head.rpartition(" ")
    return f"{first} {_plural_word(last)}{of}{tail}".strip()


def _plural_word(word: str) -> str:
    return _IRREGULAR.get(word, word + "s")


def money(symbol: str, number: str, magnitude: str | None) -> str:
    """ "$3.50" is dollars and cents, "$3.5 million" a decimal number of them."""
    major, minor = _CURRENCIES[symbol]
    whole, _, after = number.replace(",", "").partition(".")
    if magnitude:
        return f"{decimal(number)} {magnitude} {_plural_word(major)}"
    if len(after) not in (0, 2) or not minor:
        return f"{decimal(number)} {_plural_word(major)}"
    units, cents = int(whole or "0"), int(after or "0")
    parts = []
    if units or not cents:
        parts.append(f"{cardinal(units)} {major if units == 1 else _plural_word(major)}")
    if cents:
        parts.append(f"{cardinal(cents)} {minor if cents == 1 else _plural_word(minor)}")
    return " and ".join(parts)


def fraction(above: int, below: int) -> str:
    """ "3/4" is three quarters, "24/7" and "9/11" their two numbers, and what is no part of one "over"."""
    if (above, below) in ((24, 7), (9, 11)):
        return f"{cardinal(above)} {cardinal(below)}"
    if not 0 < above < below <= 100:
        return f"{cardinal(above)} over {cardinal(below)}"
    name = {2: "half", 4: "quarter"}.get(below) or ordinal(below)
    return f"{cardinal(above)} {name if above == 1 else name + 's'}"


def clock(match: re.Match[str]) -> str | None:
    """Groups: hour, minutes, seconds, "a" or "p"; each but the hour may be empty."""
    hour, minutes, seconds, half = match.groups()
    if int(hour) > 24 or int(minutes or 0) > 59:
        return None
    spoken = [cardinal(int(hour))]
    if minutes and int(minutes):
        spoken.append(("oh " if int(minutes) < 10 else "") + cardinal(int(minutes)))
    elif minutes and not half:
        spoken.append("o'clock" if 1 <= int(hour) <= 12 else "hundred")
    if seconds:
        spoken.append(f"and {cardinal(int(seconds))} seconds")
    if half:
        spoken.append(f"{half.upper()} M")
    ends_text = match.end() == len(match.string) and match[0].endswith(".")
    return " ".join(spoken) + ("." if ends_text else "")


def _words(value: int, form: str) -> str:
    from num2words import num2words

    return str(num2words(value, to=form)).replace(",", "").replace("-", " ")
