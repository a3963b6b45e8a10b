"""What kind of border follows a word: may the text be cut there, and what decides it."""

from __future__ import annotations

import enum
import re

WIDE_ENDS = frozenset("。．｡！？؟।॥")
WIDE_COMMAS = frozenset("、，；：､،؛—…")
WIDE_CLOSERS = frozenset("」』）】》〉”’»")
CLOSERS = WIDE_CLOSERS | frozenset("\"')]}*_~`")
_CLOSERS = "".join(sorted(CLOSERS))

_MARKUP = "*_~`"
_LEADERS = "\"'([{“‘«¿¡「『（【《" + _MARKUP
_DASHES = frozenset(("—", "–", "--", "---"))
_MARKER = re.compile(r"[\W_]*(?:\d{1,3}\))?")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Border(enum.Enum):
    """The border after a word and the white space that follows it."""

    GLUED = "never cut here"
    WEAK = "cut only where there is nothing better"
    WORD = "an ordinary word border"
    COMMA = "a pause inside a sentence"
    SENTENCE = "the end of a sentence"
    UNLESS_LOWER = "a sentence ends, unless a lower-case letter follows"
    UNLESS_DIGIT = "a sentence ends, unless a digit follows"
    LINE = "a line ends: a sentence too, if a list, heading or other block follows"
    IF_STARTER = "a sentence ends if the next word is one that starts sentences"


_TITLES = _words("dr mr mrs ms mx prof messrs mme mlle sra srta e.g i.e vs cf viz approx ca bzw z.b d.h u.a")
_TITLES_WHEN_CAPITAL = _words("st rev hon gen col capt cmdr lt maj sgt gov sen rep pres supt mt ft")
_BEFORE_NUMBER = _words("no nos nr num núm fig figs vol vols ch chap sec sect art pp eq")
_SHORTENED = _words(
    "etc inc ltd co corp bros jr sr ph.d dept est min max hr hrs mins secs lb lbs oz ave blvd rd st apt"
    " ext tel jan feb mar apr jun jul aug sept sep oct nov dec mon tue tues wed thu thur thurs fri sat"
    " sun usw ggf evtl inkl str ud uds av"
)

_CLINGING = _words(
    "a an the this that these those my your his her its our their of to in on at by for from with into"
    " than as and or but nor if so is are was were be been am not no very more most about around over"
    " under between der die das den dem ein eine und oder zu im am le la les un une des du de et ou à"
    " el los las una y o en con por"
)
CONJUNCTIONS = _words(
    "and or but nor yet so because since although though while whereas which who when where if unless"
    " until before after then however und oder aber weil dass denn wenn et ou mais car parce donc y"
    " pero porque cuando pues e ma perché però mas quando"
)
WIDE_CONJUNCTIONS = _words("但是 而且 因为 所以 如果 然后 并且 或者 不过 因此 同时 以及")

STARTERS = _words(
    "a all also although an and another any are as at because before both but by can could did do does"
    " each even every finally first for from had has have he here his how however i if in is it its"
    " just last let many maybe meanwhile most my next no not now of oh ok okay on once one or our"
    " overall perhaps please several she should since so some sometimes soon sure thanks that the their"
    " then there therefore these they this those though thus to today tomorrow was we well were what"
    " when where which while who why will with would yes yet you your"
)


def border_after(word: str, *, opens_line: bool) -> Border:
    """The border after `word`, a run without white space; `opens_line`: nothing but markers precede it."""
    plain = word.rstrip(_MARKUP)
    shut = plain.rstrip(_CLOSERS)
    core = shut.lstrip(_LEADERS)
    if word in _DASHES and not opens_line:
        return Border.COMMA
    if opens_line and _MARKER.fullmatch(plain):
        return Border.GLUED
    if not core:
        return Border.WEAK
    last = core[-1]
    if last in WIDE_ENDS:
        return Border.SENTENCE
    if core.endswith("...") or last == "…":
        return Border.UNLESS_LOWER
    if last in "!?.":
        border = _after_period(core[:-1], opens_line) if last == "." else Border.SENTENCE
        return Border.UNLESS_LOWER if border is Border.SENTENCE and shut != plain else border
    if last in ",;:" or last in WIDE_COMMAS:
        return Border.GLUED if core[:-1].lower() in ("e.g.", "i.e.") else Border.COMMA
    if last.isdigit() or core.lower() in _CLINGING:
        return Border.WEAK
    return Border.WORD


def _after_period(stem: str, opens_line: bool) -> Border:
    bare = stem.lower()
    if bare.isdigit() and (opens_line or len(bare) <= 2):
        return Border.GLUED if opens_line else Border.IF_STARTER
    if bare in _TITLES or (bare in _TITLES_WHEN_CAPITAL and stem[0].isupper()):
        return Border.GLUED
    if bare in _BEFORE_NUMBER:
        return Border.UNLESS_DIGIT
    if bare in _SHORTENED or _INITIALS.fullmatch(stem):
        return Border.IF_STARTER
    return Border.SENTENCE
