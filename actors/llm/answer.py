"""One answer, whatever decodes it: which text to decode next, and what becomes of it.

An answer is decoded in segments.  Free text is one; where it opens a function call it is cut off, and the call is a
segment of its own, decoded under a schema; text after it is the next.  A forced call begins with the call's segment.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from actors.llm import tools
from actors.llm.prompt import ChatTemplate, Fitted, fit
from actors.messages import LlmDone, LlmRequest, LlmText, LlmToolCall, Tool

logger = logging.getLogger(__name__)
MIN_ANSWER_SHARE = 4
"""At least this part (one in ...) of the context is kept for the answer, if it may be that long."""


@dataclass(frozen=True)
class Segment:
    """A piece of decoding: go on after `prompt` and `prefix`."""

    prompt: str
    """The rendered messages."""
    prefix: str
    """What has been said of the answer."""
    max_tokens: int
    schema: dict[str, Any] | None
    """JSON schema that the whole segment must follow; None: free text."""
    seed: int
    position: int
    """Tokens of the answer before this segment."""


class Answer:
    """What has become of a request so far.

    Call `segment()`, decode it, and `feed` each piece until one returns `False` from `wants_more` or the model stops;
    then `end_segment`.  Repeat until `done`.
    """

    def __init__(
        self,
        request: LlmRequest,
        template: ChatTemplate,
        count: Callable[[str], int],
        context_tokens: int,
        max_tokens: int,
    ) -> None:
        """Raises `BadPrompt` or `BadToolChoice` for a request that cannot be answered."""
        self._request = request
        self._shown: Sequence[Tool] = tools.shown(request)
        self._forced: Sequence[Tool] = tools.forced(request)
        wanted = request.max_tokens if request.max_tokens is not None else max_tokens
        self._left = wanted - request.delivered_tokens
        """Tokens that may yet be decoded."""
        self._raw = request.delivered
        for call in request.delivered_calls:
            self._raw += ("\n" if self._raw else "") + tools.written(call.name, call.arguments)
        self._calls = len(request.delivered_calls)
        delivered_tokens = count(self._raw) if self._raw else 0
        reserve = min(max(self._left, 1), context_tokens // MIN_ANSWER_SHARE)
        self.fitted: Fitted = fit(
            template, request.messages, self._shown, context_tokens - delivered_tokens - reserve, count
        )
        if self.fitted.dropped or self.fitted.cut:
            logger.info(
                "prompt over %d tokens: %d oldest messages dropped, %d cut",
                context_tokens,
                self.fitted.dropped,
                self.fitted.cut,
            )
        self._context_left = context_tokens - count(self.fitted.text) - delivered_tokens
        self._position = request.delivered_tokens
        self._in_call = bool(self._forced) and not self._calls
        if self._in_call:
            self._raw += tools.OPENING + "\n"
        self._visible = tools.VisibleText()
        self._call_text = ""
        self._pending_tokens = 0
        """Tokens decoded of which no text has been shown."""
        self._input_tokens = 0
        self._cached_tokens = 0
        self._first_segment = True
        self.wants_more = True
        self.done: LlmDone | None = None
        if self._forced and self._calls:
            self._finish("tool_calls")
        elif self._left <= 0:
            self._finish("length")

    def segment(self) -> Segment:
        """What to decode next."""
        self.wants_more = True
        schema = tools.call_schema(self._forced or self._shown) if self._in_call else None
        self._call_text = ""
        limit = max(1, min(self._left, self._context_left))
        return Segment(self.fitted.text, self._raw, limit, schema, self._request.seed, self._position)

    def began(self, prompt_tokens: int, cached_tokens: int) -> None:
        """The engine reads `prompt_tokens` of prompt before the answer, of which it knew `cached_tokens`."""
        if self._first_segment:
            self._input_tokens = prompt_tokens
            self._cached_tokens = min(cached_tokens, prompt_tokens)
            self._first_segment = False

    def feed(self, text: str, tokens: int) -> list[LlmText]:
        """The text to show for a decoded piece of `tokens` tokens."""
        self._left -= tokens
        self._context_left -= tokens
        self._position += tokens
        self._pending_tokens += tokens
        if self._in_call:
            self._call_text += text
            return []
        if not self._shown:
            self._raw += text
            return self._show(text)
        shown = self._visible.feed(text)
        if self._calls:
            # Behind a call only another call is expected: anything else is chatter about a result not yet there.
            self.wants_more = not shown.strip() and not self._visible.opened
            return []
        self._raw += shown
        self.wants_more = not self._visible.opened
        return self._show(shown)

    def _show(self, text: str) -> list[LlmText]:
        if not text:
            return []
        tokens, self._pending_tokens = self._pending_tokens, 0
        return [LlmText(text, tokens)]

    def end_segment(self, reason: Literal["stop", "length"]) -> list[LlmText | LlmToolCall]:
        """The decoding of this segment ended: of itself, at its limit, or because nothing more was wanted."""
        if self._in_call:
            return self._end_call(reason)
        if self._visible.opened:
            self._visible = tools.VisibleText()
            self._in_call = True
            separator = "\n" if self._raw or self._calls else ""
            self._raw += f"{separator}{tools.OPENING}\n"
            self._pending_tokens = 0
            if self._left <= 0 or self._context_left <= 0:
                self._finish("length")
            return []
        if self._calls:
            self._finish("tool_calls")
            return []
        results: list[LlmText | LlmToolCall] = list(self._show(self._visible.rest()))
        self._finish(reason)
        return results

    def _end_call(self, reason: Literal["stop", "length"]) -> list[LlmText | LlmToolCall]:
        self._pending_tokens = 0
        try:
            call = tools.parse_call(self._call_text)
        except ValueError:
            # The schema was followed, so only the limit can have cut it off.
            self._finish("length")
            return []
        self._calls += 1
        self._in_call = False
        self._raw += f"{self._call_text}\n{tools.CLOSING}"
        if self._forced or reason == "length" or self._left <= 0 or self._context_left <= 0:
            self._finish("tool_calls")
        return [call]

    def _finish(self, reason: Literal["stop", "length", "tool_calls"]) -> None:
        self.wants_more = False
        self.done = LlmDone(reason, self._input_tokens, self._cached_tokens, self._position)
