"""What of a model's raw text belongs to the transcript: reasoning and tool-call syntax are taken out."""

from __future__ import annotations

import re

_PAIRED = ("think", "thinking", "thought", "reasoning", "function_call", "function_calls")
_PAIRED_TOOLS = ("tool_call", "tool_calls", "tool_code", "tool_response")
_TAGS = _PAIRED + _PAIRED_TOOLS

# Opening text -> the texts any of which ends the hidden block; () hides the rest of the message.
_BLOCKS: dict[str, tuple[str, ...]] = {f"<{name}>": (f"</{name}>",) for name in _TAGS} | {
    "<function=": ("</function>",),
    "<invoke ": ("</invoke>",),
    "[think]": ("[/think]",),
    "[tool_calls]": (),
    "◁think▷": ("◁/think▷",),
    "```tool_code": ("```",),
    "```tool_call": ("```",),
    "<|python_tag|>": ("<|eom_id|>", "<|eot_id|>"),
    "<|tool_call|>": ("<|/tool_call|>", "<|end|>"),
    "<|tool_call>": ("<tool_call|>",),
    "<|tool_call_start|>": ("<|tool_call_end|>",),
    "<|tool_calls_section_begin|>": ("<|tool_calls_section_end|>",),
    "<｜tool▁calls▁begin｜>": ("<｜tool▁calls▁end｜>",),
    "<|channel|>analysis": ("<|end|>",),
    "<|channel|>commentary": ("<|call|>", "<|end|>"),
    "<|channel|>final": ("<|message|>",),
}
_DROPPED = frozenset(f"</{name}>" for name in (*_TAGS, "function", "invoke")) | {
    "[/think]",
    "◁/think▷",
    "<|start|>assistant",
}
_OPENINGS = frozenset(_BLOCKS) | _DROPPED
_PREFIXES = frozenset(opening[:n] for opening in _OPENINGS for n in range(1, len(opening)))
_LONGEST_CLOSING = max(len(closing) for closings in _BLOCKS.values() for closing in closings)
_LITERAL_AFTER = "`"

_TOKEN = re.compile(r"<[|｜][\w/▁-]{1,40}[|｜]>")
_TOKEN_PREFIX = re.compile(r"<(?:[|｜][\w/▁-]{0,40}[|｜]?)?")
_BARE_CALL = re.compile(r'\{\s*"name"\s*:\s*"[\w.-]+"\s*,\s*"(?:arguments|parameters)"')
_BARE_CALL_PREFIX = re.compile(r'\{\s*(?:"[\s"\w:.,-]{0,160})?')


class VisibleText:
    """Filters a message's raw text, delta by delta, down to its visible transcript.

    Hidden: reasoning blocks (`<think>` and its kin), tool-call syntax of the common model families, control
    tokens such as `<|im_end|>`, and a message that is nothing but a JSON tool call. A block that is never
    closed hides the rest of the message. A tag quoted in inline code (`` `<think>` ``) is ordinary text.
    A model whose prompt already opened the reasoning must be given `<think>` as the first delta.

    How the text was cut into deltas does not matter. At most 200 characters are held back.
    """

    def __init__(self) -> None:
        self._held = ""
        self._hidden = False
        self._closings: tuple[str, ...] = ()
        self._last = ""
        self._blank = True
        self._trim = False

    def feed(self, delta: str) -> str:
        """The text that has become visible; a possible beginning of a tag waits until it is decided."""
        out: list[str] = []
        for char in delta:
            self._step(char, out)
        return "".join(out)

    def finish(self) -> str:
        """The end of the message: what was held back and turned out to be ordinary text."""
        held, self._held = self._held, ""
        if self._hidden or _TOKEN.fullmatch(held):
            return ""
        out: list[str] = []
        for char in held:
            self._show(char, out)
        return "".join(out)

    def _step(self, char: str, out: list[str]) -> None:
        if self._hidden:
            self._skip(char)
        elif self._held:
            self._decide(char, out)
        elif self._may_open(char):
            self._held = char
        else:
            self._show(char, out)

    def _may_open(self, char: str) -> bool:
        if char == "{":
            return self._blank
        return char in _PREFIXES and not (char == "<" and self._last == _LITERAL_AFTER)

    def _decide(self, char: str, out: list[str]) -> None:
        held = self._held
        candidate = (held + char).lower()
        if candidate in _PREFIXES or _TOKEN_PREFIX.fullmatch(candidate):
            self._held = held + char
        elif candidate in _OPENINGS:
            self._hide(_BLOCKS.get(candidate), out)
        elif _TOKEN.fullmatch(candidate):
            self._hide(None, out)
        elif _BARE_CALL.fullmatch(candidate):
            self._hide((), out)
        elif _BARE_CALL_PREFIX.fullmatch(candidate):
            self._held = held + char
        elif _TOKEN.fullmatch(held):
            self._hide(None, out)
            self._step(char, out)
        else:
            self._held = ""
            self._show(held[0], out)
            for again in held[1:] + char:
                self._step(again, out)

    def _hide(self, closings: tuple[str, ...] | None, out: list[str]) -> None:
        """Drop what is held; with closings, also everything up to one of them."""
        self._held = ""
        self._hidden = closings is not None
        self._closings = closings or ()
        self._trim = self._blank

    def _skip(self, char: str) -> None:
        self._held = (self._held + char.lower())[-_LONGEST_CLOSING:]
        if any(self._held.endswith(closing) for closing in self._closings):
            self._held = ""
            self._hidden = False

    def _show(self, char: str, out: list[str]) -> None:
        if self._trim and char.isspace():
            return
        self._trim = False
        self._blank = self._blank and char.isspace()
        self._last = char
        out.append(char)
