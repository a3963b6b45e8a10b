"""Function calls: how they look in a model's text, the schema that forces them, and text that never shows them.

A call is a JSON object between `<tool_call>` tags, the form that most chat templates with tools teach; models whose
template knows no tools are told it in the system prompt.  Whatever stands between the tags is decoded under a JSON
schema, so a call always names a tool that exists and its arguments parse.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from actors.messages import LlmRequest, LlmToolCall, Tool

OPENING = "<tool_call>"
CLOSING = "</tool_call>"


class BadToolChoice(ValueError):
    """The tool choice cannot be followed."""


def shown(request: LlmRequest) -> list[Tool]:
    """The tools that the model is told of."""
    return [] if request.tool_choice == "none" else request.tools


def forced(request: LlmRequest) -> list[Tool]:
    """The tools of which one must be called: empty when the model is free to choose.

    Raises `BadToolChoice` for a choice that is not known and for a function that is not there.
    """
    choice = request.tool_choice
    if choice in ("auto", "none"):
        return []
    names = ", ".join(tool.name for tool in request.tools) or "none were given"
    if choice == "required":
        if not request.tools:
            raise BadToolChoice(
                "tool_choice is required, but the request has no tools; add some or choose auto."
            )
        return request.tools
    kind, _, name = choice.partition(":")
    if kind != "function":
        raise BadToolChoice(f"tool_choice {choice!r} is not auto, none, required or function:NAME.")
    chosen = [tool for tool in request.tools if tool.name == name]
    if not chosen:
        raise BadToolChoice(
            f"tool_choice asks for function {name!r}, which is not among the tools ({names})."
        )
    return chosen


def call_schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """JSON schema of one call of one of `tools`: `{"name": ..., "arguments": {...}}`.

    Objects are closed: a property that a tool's schema does not list is not written.
    """
    definitions: dict[str, Any] = {}
    calls = []
    for tool in tools:
        arguments = _closed(tool.parameters, f"#/$defs/{tool.name}.")
        for key in ("$defs", "definitions"):
            for name, schema in arguments.pop(key, {}).items():
                definitions[f"{tool.name}.{name}"] = schema
        arguments.setdefault("type", "object")
        if not arguments.get("properties") and "$ref" not in arguments:
            arguments.update(properties={}, additionalProperties=arguments.get("additionalProperties", False))
        calls.append(
            {
                "type": "object",
                "properties": {"name": {"const": tool.name}, "arguments": arguments},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
        )
    schema = calls[0] if len(calls) == 1 else {"anyOf": calls}
    return {**schema, "$defs": definitions} if definitions else schema


def _closed(schema: Any, definitions: str) -> Any:
    """A copy of `schema` with objects closed and references led to `definitions`."""
    if isinstance(schema, list):
        return [_closed(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {key: _closed(value, definitions) for key, value in schema.items()}
    reference = copy.get("$ref")
    if isinstance(reference, str):
        for prefix in ("#/$defs/", "#/definitions/"):
            if reference.startswith(prefix):
                copy["$ref"] = definitions + reference.removeprefix(prefix)
    if isinstance(copy.get("properties"), dict) and copy.get("type", "object") == "object":
        copy.setdefault("additionalProperties", False)
    return copy


def parse_call(text: str) -> LlmToolCall:
    """The call that `text`, decoded under `call_schema`, is; raises `ValueError` when it was cut off."""
    call = json.loads(text)
    return LlmToolCall(str(call["name"]), json.dumps(call["arguments"], ensure_ascii=False))


def written(name: str, arguments: str) -> str:
    """A call as a model writes it."""
    return f'{OPENING}\n{{"name": {json.dumps(name)}, "arguments": {arguments or "{}"}}}\n{CLOSING}'


def instructions(tools: Sequence[Tool]) -> str:
    """What a model is told whose chat template knows no tools."""
    listed = "\n".join(
        json.dumps(
            {"name": t.name, "description": t.description, "parameters": t.parameters}, ensure_ascii=False
        )
        for t in tools
    )
    return (
        "You can call these functions, one JSON description a line:\n"
        f"{listed}\n"
        "Call one only when the user's request needs it. To call it, answer with nothing but\n"
        f'{OPENING}\n{{"name": "<function>", "arguments": {{...}}}}\n{CLOSING}\n'
        "and the result will follow. Otherwise answer in plain words."
    )


class VisibleText:
    """Splits a growing text where a call opens, and never shows any of the tag.

    What could still become the tag is held back, and so is white space, which belongs to the tag if one follows.
    """

    def __init__(self) -> None:
        self._held = ""
        self.opened = False

    def feed(self, text: str) -> str:
        """The text to show now.  Sets `opened` when a call opens; text behind the tag is dropped."""
        buffer = self._held + text
        before, tag, _ = buffer.partition(OPENING)
        if tag:
            self._held = ""
            self.opened = True
            return before.rstrip()
        keep = len(buffer) - _tag_prefix(buffer)
        keep = len(buffer[:keep].rstrip())
        self._held = buffer[keep:]
        return buffer[:keep]

    def rest(self) -> str:
        """What is held back when the text ends."""
        held, self._held = self._held, ""
        return held


def _tag_prefix(text: str) -> int:
    """Length of the longest start of the tag that `text` ends with."""
    for length in range(min(len(OPENING) - 1, len(text)), 0, -1):
        if text.endswith(OPENING[:length]):
            return length
    return 0
