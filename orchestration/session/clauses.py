"""A stream of text deltas cut into clauses that are spoken one by one, the first as early as possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from orchestration.session.borders import (
    CLOSERS,
    CONJUNCTIONS,
    STARTERS,
    WIDE_CLOSERS,
    WIDE_COMMAS,
    WIDE_CONJUNCTIONS,
    WIDE_ENDS,
    Border,
    border_after,
)
from orchestration.session.speakable import speakable
from orchestration.session.visible import VisibleText

_MARKUP_SPAN_MAX_CHARS = 300
_TEXT_MAX_CHARS = 1024
_FENCE_MIN_CHARS = 3
_SHORTEST_MAX_CHARS = 12
_ZERO_WIDTH_JOINER = "\u200d"
_CERTAIN_ENDS = frozenset("!?") | WIDE_ENDS
_WIDE_CHAR_WEIGHT = 3
_BLOCK_OPENERS = frozenset("-*+#>|•`")
_NOT_AT_START = frozenset("ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮー々ヽヾゝゞ")


@dataclass(frozen=True, slots=True)
class Clause:
    """A contiguous piece of the visible transcript and what is spoken for it ("": it is not synthesized)."""

    text: str
    spoken: str


@dataclass(frozen=True, slots=True)
class ClauseOptions:
    """Lengths in letters and digits of speech, spaces included; a CJK character counts as three.

    Attributes:
        first_min_chars: the first spoken clause may end at a comma from here (default 12), at a sentence end
            from a third of it; each later clause needs three times the one before: speech gets smoother.
        first_max_chars: where the first spoken clause is cut without punctuation (default 80); doubles per
            clause.
        min_chars: a later sentence shorter than this is merged with the next (default 20).
        max_chars: no clause is longer (default 180).
        language: ISO 639-1, how web addresses are read (default "en").
    """

    first_min_chars: int = 12
    first_max_chars: int = 80
    min_chars: int = 20
    max_chars: int = 180
    language: str = "en"

    def __post_init__(self) -> None:
        if not 3 <= self.first_min_chars <= self.first_max_chars <= self.max_chars:
            raise ValueError(f"asked for {self}: needs 3 <= first_min_chars <= first_max_chars <= max_chars")
        if not 1 <= self.min_chars <= self.max_chars:
            raise ValueError(f"asked for {self}: needs 1 <= min_chars <= max_chars")
        if self.first_max_chars < _SHORTEST_MAX_CHARS:
            raise ValueError(f"asked for {self}: needs first_max_chars >= {_SHORTEST_MAX_CHARS}")


class _Mark(NamedTuple):
    """A place where the waiting text could be cut, and how much speech lies before it."""

    at: int = 0
    units: int = 0


_NOWHERE = _Mark()


class ClauseStream:
    """Cuts a message's raw text, delta by delta, into clauses whose texts concatenate to its visible text.

    Every decision follows from the characters before it, so how the text was cut into deltas does not matter.
    A character is looked at a bounded number of times and at most some 1500 characters are held.
    """

    def __init__(self, options: ClauseOptions | None = None) -> None:
        self._options = options or ClauseOptions()
        self._visible = VisibleText()
        self._ready: list[Clause] = []
        self._spoken_clauses = 0
        self._silent_until = ""
        self._opens_line = True
        self._clause_opens_line = True
        self._block_line = False
        self._grow()
        self._reset()

    def _reset(self) -> None:
        """Forget the waiting text and all that was found in it."""
        self._text = ""
        self._units = 0
        self._gap = True
        self._gap_newline = False
        self._word_at = 0
        self._word_units = 0
        self._pending: Border | None = None
        self._starter: _Mark | None = None
        self._wide: Border | None = None
        self._guard = ""
        self._guard_at = 0
        self._in_address = False
        self._run = 0
        self._fence = ""
        self._fence_at = -1
        self._comma = self._turn = self._word = self._weak = self._run_border = _NOWHERE

    def _grow(self) -> None:
        options, clauses = self._options, self._spoken_clauses
        self._sentence_min = options.min_chars if clauses else options.first_min_chars // 3
        self._comma_min = min(options.first_min_chars * 3 ** min(clauses, 9), options.max_chars * 2 // 3)
        self._max = min(options.first_max_chars * 2 ** min(clauses, 9), options.max_chars)

    def feed(self, delta: str) -> list[Clause]:
        """The clauses that `delta` (raw text) completed."""
        for char in self._visible.feed(delta):
            self._step(char)
        return self._take()

    def finish(self) -> list[Clause]:
        """The end of the message: the last clauses, however short."""
        for char in self._visible.finish():
            self._step(char)
        if self._run and not self._silent_until:
            self._end_of_run()
        if self._fence_at >= 0:
            self._open_fence()
        self._emit(self._text, silent=bool(self._silent_until))
        self._text = ""
        return self._take()

    def hurry(self) -> list[Clause]:
        """Cut what waits at its best place now: for a driver whose audio runs out while the model is slow."""
        if self._silent_until:
            return []
        here = _NOWHERE
        if self._is_free() and self._text.rstrip()[-1:] in _CERTAIN_ENDS:
            here = self._here()
        for mark in (here, self._comma, self._turn, self._word, self._run_border):
            if mark.units >= self._options.first_min_chars:
                self._cut(mark.at)
                break
        return self._take()

    def _take(self) -> list[Clause]:
        ready, self._ready = self._ready, []
        return ready

    def _here(self) -> _Mark:
        return _Mark(len(self._text), self._units)

    def _is_free(self) -> bool:
        """Whether the text may be cut here: not inside a link, a tag or code."""
        return not self._guard and self._fence_at < 0

    # One character: where it belongs and which borders it decides.

    def _step(self, char: str) -> None:
        if self._silent_until:
            self._hush(char)
            return
        if self._run and char != self._text[-1]:
            self._end_of_run()
        if char.isspace():
            self._space(char)
        else:
            self._ink(char)
        if self._fence_at >= 0:
            if char == "\n" or len(self._text) - self._fence_at > _MARKUP_SPAN_MAX_CHARS:
                self._open_fence()
        elif self._units > self._max or len(self._text) >= _TEXT_MAX_CHARS:
            self._overflow(char)

    def _space(self, char: str) -> None:
        if self._gap:
            self._text += char
        else:
            self._end_word(char)
        if char == "\n":
            self._end_line()

    def _end_word(self, space: str) -> None:
        self._settle_starter(space)
        word = self._text[self._word_at :]
        border = border_after(word, opens_line=self._opens_line)
        self._text += space
        self._gap, self._gap_newline, self._in_address, self._wide = True, False, False, None
        if self._opens_line and (border is not Border.GLUED or any(char.isalnum() for char in word)):
            self._opens_line = False
            self._block_line = self._block_line or (border is Border.GLUED and word[-2:-1].isdigit())
        self._pending = border
        if not self._is_free():
            return
        if word.lower() in CONJUNCTIONS:
            self._turn = _Mark(self._word_at, self._word_units)
        if border is Border.WORD:
            self._word = self._here()
        elif border is Border.WEAK:
            self._weak = self._here()
        elif border is Border.SENTENCE or border is Border.COMMA:
            self._offer(self._here(), border)

    def _end_line(self) -> None:
        self._guard = ""
        if self._gap_newline or self._block_line:
            self._pending = None
            self._offer(self._here(), Border.SENTENCE)
        elif self._pending is not Border.GLUED:
            self._pending = Border.LINE
        self._gap_newline = self._opens_line = True
        self._block_line = False

    def _ink(self, char: str) -> None:
        if self._gap:
            self._begin_word(char)
        elif not char.isalpha():
            self._settle_starter(char)
        self._settle_wide(char)
        before = self._text[-1:]
        self._text += char
        self._track_markup(before, char)
        if _is_wide(char):
            self._track_run(before, char)
            self._units += _WIDE_CHAR_WEIGHT
        elif char.isalnum() and not self._in_address and self._guard != ")":
            self._units += 1
        if self._is_free() and not self._in_address:
            if char in WIDE_ENDS:
                self._wide = Border.SENTENCE
            elif char in WIDE_COMMAS and self._wide is None:
                self._wide = Border.COMMA

    def _begin_word(self, char: str) -> None:
        pending, self._pending = self._pending, None
        if pending is Border.IF_STARTER and char.isupper():
            self._starter = self._here()
        elif pending is Border.UNLESS_LOWER:
            self._offer(self._here(), Border.COMMA if char.islower() else Border.SENTENCE)
        elif pending is Border.UNLESS_DIGIT and not char.isdigit():
            self._offer(self._here(), Border.SENTENCE)
        elif pending is Border.LINE:
            opens_block = char in _BLOCK_OPENERS or char.isdigit()
            self._offer(self._here(), Border.SENTENCE if opens_block else Border.COMMA)
        if self._opens_line and char in _BLOCK_OPENERS:
            self._block_line = True
        if self._units:
            self._units += 1
        self._gap = False
        self._word_at, self._word_units = len(self._text), self._units

    def _settle_starter(self, char: str) -> None:
        mark, self._starter = self._starter, None
        if mark and char != "." and self._text[mark.at :].lower() in STARTERS:
            self._offer(mark, Border.SENTENCE)

    def _settle_wide(self, char: str) -> None:
        """Decide the border after `。` or `，`, where no space follows; closing marks go before it."""
        wide = self._wide
        if wide is None or char in WIDE_ENDS or char in WIDE_COMMAS or char in WIDE_CLOSERS:
            return
        if wide is Border.SENTENCE and (char in CLOSERS or char in _CERTAIN_ENDS):
            return
        self._wide = None
        if wide is Border.SENTENCE or not char.isdigit():
            self._offer(self._here(), wide)

    def _track_run(self, before: str, char: str) -> None:
        """Where to cut a run of CJK characters: before a conjunction, where hiragana end, or anywhere."""
        if not (self._is_free() and before and _is_wide(before)) or char in _NOT_AT_START:
            return
        here = self._run_border = _Mark(len(self._text) - 1, self._units)
        if before + char in WIDE_CONJUNCTIONS:
            self._turn = _Mark(here.at - 1, here.units - _WIDE_CHAR_WEIGHT)
        elif _is_hiragana(before) and not _is_hiragana(char):
            self._turn = here

    # Markup that must not be cut, and text that is not spoken.

    def _track_markup(self, before: str, char: str) -> None:
        if char in "`~":
            self._run += 1
        if self._guard:
            too_long = len(self._text) - self._guard_at > _MARKUP_SPAN_MAX_CHARS and self._guard != ")"
            if char == self._guard or too_long:
                self._guard = ""
        elif char == "[":
            self._open_guard("]")
        elif char == "`":
            self._open_guard("`")
        elif before == "]" and char == "(":
            self._open_guard(")")
        elif before == "<" and (char.isalpha() or char in "/!"):
            self._open_guard(">")
        if not char.isascii():
            self._in_address = False
        elif char == "/" and self._text.endswith("://"):
            self._in_address = True

    def _open_guard(self, closing: str) -> None:
        self._guard = closing
        self._guard_at = len(self._text)

    def _end_of_run(self) -> None:
        """A run of backticks or tildes is over: three or more open a code block, or close it on its line."""
        mark, length, self._run = self._text[-1], self._run, 0
        start = len(self._text) - length
        if length < _FENCE_MIN_CHARS:
            return
        if self._fence_at >= 0:
            if mark == self._fence[0] and length >= len(self._fence):
                self._fence_at, self._guard = -1, ""
        elif mark == "`" or (self._opens_line and start == self._word_at):
            self._fence_at, self._fence, self._guard = start, mark * length, ""

    def _open_fence(self) -> None:
        head, body, fence = self._text[: self._fence_at], self._text[self._fence_at :], self._fence
        if any(char.isalnum() for char in head):
            self._emit(head)
        else:
            body = head + body
        self._reset()
        self._text, self._silent_until = body, fence

    def _hush(self, char: str) -> None:
        until = self._silent_until
        if until[0] in "`~":
            closed = self._run >= len(until) and char != until[0]
            self._run = self._run + 1 if char == until[0] else 0
        else:
            closed = char.isspace() or self._text.endswith(until)
        if closed:
            self._emit(self._text, silent=True)
            self._silent_until = ""
            self._opens_line = False
            self._reset()
            self._step(char)
            return
        self._text += char
        if len(self._text) >= _TEXT_MAX_CHARS:
            self._emit(self._text, silent=True)
            self._text = ""

    # Cutting

    def _offer(self, mark: _Mark, border: Border) -> None:
        """Cut at `mark` if what lies before it is long enough for such a border, else remember it."""
        if not self._is_free():
            return
        if mark.units >= (self._sentence_min if border is Border.SENTENCE else self._comma_min):
            self._cut(mark.at)
        else:
            self._comma = mark

    def _overflow(self, char: str) -> None:
        """Cut a text that is too long at the most natural place it has."""
        marks = (self._comma, self._turn, self._word, self._run_border, self._weak)
        best = max(marks, key=lambda mark: (mark.units >= self._max // 3, bool(mark.units)))
        if best.units:
            self._cut(best.at)
        elif len(self._text) >= _TEXT_MAX_CHARS:
            until = " " if self._in_address else ")" if self._guard == ")" else ""
            self._emit(self._text)
            self._reset()
            self._silent_until = until
        elif self._is_free() and char.isalnum() and self._text[-2] != _ZERO_WIDTH_JOINER:
            self._cut(len(self._text) - 1)

    def _cut(self, at: int) -> None:
        rest = self._text[at:]
        self._emit(self._text[:at])
        self._opens_line = self._clause_opens_line
        self._reset()
        for char in rest:
            self._step(char)

    def _emit(self, text: str, *, silent: bool = False) -> None:
        if not text:
            return
        spoken = ""
        if not silent:
            spoken = speakable(text, language=self._options.language, opens_line=self._clause_opens_line)
        self._ready.append(Clause(text, spoken))
        line_end = text.rstrip(" \t\r")
        self._clause_opens_line = line_end.endswith("\n") or (not line_end and self._clause_opens_line)
        if spoken:
            self._spoken_clauses += 1
            self._grow()


def _is_wide(char: str) -> bool:
    if char < "\u3040":
        return False
    return (
        char <= "\u30ff"
        or "\u3400" <= char <= "\u9fff"
        or "\uac00" <= char <= "\ud7a3"
        or char >= "\U00020000"
    )


def _is_hiragana(char: str) -> bool:
    return "\u3041" <= char <= "\u309f"
