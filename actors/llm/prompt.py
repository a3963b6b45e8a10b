"""From messages to the text a model reads: chat templates, tools in them, and histories that are too long."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec

from actors.llm import tools as tool_text
from actors.messages import AudioPart, ImagePart, Message, TextPart, Tool

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
"""Used where a model brings no chat template."""
ELLIPSIS = " … "


class BadPrompt(ValueError):
    """These messages cannot be made into a prompt."""


class ChatTemplate:
    """A model's Jinja chat template.

    Tools go through the template where it writes calls between `<tool_call>` tags as JSON; otherwise they are
    described in the system message, calls and their results become text of the conversation.
    """

    def __init__(
        self,
        source: str | None,
        *,
        bos: str = "",
        eos: str = "",
        control_tokens: Sequence[str] = (),
        thinking: bool = False,
    ) -> None:
        """`control_tokens` are taken apart where they stand in a message, so that no text can end its own turn."""
        from jinja2.exceptions import TemplateError
        from jinja2.ext import loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        def refuse(message: str) -> None:
            raise TemplateError(message)

        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals.update(
            raise_exception=refuse, strftime_now=lambda form: datetime.now().strftime(form)
        )
        self._error = TemplateError
        self._template = environment.from_string(source or CHATML)
        self._variables = {"bos_token": bos, "eos_token": eos, "enable_thinking": thinking}
        marks = sorted((mark for mark in control_tokens if len(mark) > 1), key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, marks))) if marks else None
        self.native_tools = self._writes_tools()

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> str:
        """The prompt up to where the assistant's answer begins; raises `BadPrompt`."""
        plain = [self._defused(message) for message in messages]
        if self.native_tools:
            rows = [_native(message) for message in plain]
            described = [_described(tool) for tool in tools]
        else:
            rows = _joined([_generic(message) for message in _told(plain, tools)])
            described = []
        try:
            return self._render(rows, described)
        except self._error:
            # Some templates refuse a system message, or two turns of one role in a row.
            try:
                return self._render(_joined(_without_system(rows)), described)
            except self._error as error:
                raise BadPrompt(f"The model's chat template refuses these messages: {error}") from error

    def _render(self, rows: list[dict[str, Any]], tools: list[dict[str, Any]]) -> str:
        return self._template.render(
            messages=rows, tools=tools or None, add_generation_prompt=True, **self._variables
        )

    def _defused(self, message: Message) -> Message:
        text = _heard(message)
        if self._control is not None:
            text = self._control.sub(lambda mark: f"{mark[0][0]} {mark[0][1:]}", text)
        return msgspec.structs.replace(message, parts=[TextPart(text)])

    def _writes_tools(self) -> bool:
        tool = Tool("probe_tool", "Probe.", {"type": "object", "properties": {}})
        call = {
            "type": "function",
            "id": "1",
            "function": {"name": "probe_call", "arguments": {"probe_key": 1}},
        }
        rows: list[dict[str, Any]] = [
            {"role": "user", "content": "probe"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "name": "probe_call", "content": "probe_result"},
        ]
        try:
            text = self._render(rows, [_described(tool)])
        except Exception:  # a template may fail in any way on what it does not know
            return False
        wanted = ("probe_tool", "probe_call", "probe_key", "probe_result", tool_text.OPENING)
        return all(part in text for part in wanted) and "<function=" not in text


def _to_json(value: Any, indent: int | None = None, **_: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _heard(message: Message) -> str:
    """All that the message says, in text."""
    texts = []
    for part in message.parts:
        match part:
            case TextPart(text):
                texts.append(text)
            case AudioPart(_, transcript) if transcript is not None:
                texts.append(transcript)
            case AudioPart():
                raise BadPrompt("This model does not hear: give the audio's transcript.")
            case ImagePart():
                raise BadPrompt("This model does not see images: leave them out.")
    return "".join(texts)


def _described(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _native(message: Message) -> dict[str, Any]:
    row: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_calls:
        row["tool_calls"] = [
            {
                "type": "function",
                "id": call.call_id,
                "function": {"name": call.name, "arguments": _arguments(call.arguments)},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        row["tool_call_id"] = message.tool_call_id
    return row


def _arguments(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def _told(messages: list[Message], tools: Sequence[Tool]) -> list[Message]:
    """The tools described at the end of the system message."""
    if not tools:
        return messages
    system = Message("system", [TextPart(tool_text.instructions(tools))])
    if messages and messages[0].role == "system":
        both = TextPart(f"{messages[0].text}\n\n{system.text}")
        return [Message("system", [both]), *messages[1:]]
    return [system, *messages]


def _generic(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "user", "content": f"<tool_response>\n{message.text}\n</tool_response>"}
    calls = [tool_text.written(call.name, call.arguments) for call in message.tool_calls]
    return {"role": message.role, "content": "\n".join([message.text, *calls] if message.text else calls)}


def _joined(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbours of one role made one."""
    joined: list[dict[str, Any]] = []
    for row in rows:
        plain = "tool_calls" not in row and "tool_call_id" not in row
        if joined and plain and joined[-1]["role"] == row["role"] and "tool_calls" not in joined[-1]:
            joined[-1] = {**joined[-1], "content": f"{joined[-1]['content']}\n{row['content']}"}
        else:
            joined.append(row)
    return joined


def _without_system(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """System messages spoken by the user instead."""
    return [{**row, "role": "user"} if row["role"] == "system" else row for row in rows]


@dataclass(frozen=True)
class Fitted:
    """A prompt that fits."""

    text: str
    dropped: int = 0
    """Messages left out, the oldest."""
    cut: int = 0
    """Messages of which the middle was left out."""


def fit(
    template: ChatTemplate,
    messages: Sequence[Message],
    tools: Sequence[Tool],
    budget_tokens: int,
    count: Callable[[str], int],
) -> Fitted:
    """Render `messages` into at most `budget_tokens`, as `count` counts them.

    The oldest turns go first, each whole: what the user said, the answer, its calls and their results.  System
    messages at the start stay.  Turns go in blocks of a quarter of the budget, so that a long conversation's prompt
    keeps its beginning (and its cached prefix) for several turns.  If the last turn alone is too long, the middle of
    its longest message goes.  Raises `BadPrompt` for no messages and when even that does not fit.
    """
    if not messages:
        raise BadPrompt("The request has no messages.")
    text = template.render(messages, tools)
    total = count(text)
    if total <= budget_tokens:
        return Fitted(text)
    system, turns = _turns(messages)
    block = max(1, budget_tokens // 4)
    surplus = math.ceil((total - budget_tokens) / block) * block
    start = 0
    while surplus > 0 and start < len(turns) - 1:
        surplus -= sum(count(_weight(message)) for message in turns[start])
        start += 1
    while True:
        kept = [*system, *(message for turn in turns[start:] for message in turn)]
        text = template.render(kept, tools)
        if count(text) <= budget_tokens:
            return Fitted(text, dropped=len(messages) - len(kept))
        if start >= len(turns) - 1:
            break
        start += 1
    return replace(_cut(template, kept, tools, budget_tokens, count), dropped=len(messages) - len(kept))


def _turns(messages: Sequence[Message]) -> tuple[list[Message], list[list[Message]]]:
    """The system messages at the start, and the turns: each from a user's message up to the next."""
    first = next((i for i, message in enumerate(messages) if message.role != "system"), len(messages))
    turns: list[list[Message]] = []
    for message in messages[first:]:
        if not turns or (message.role == "user" and any(m.role != "user" for m in turns[-1])):
            turns.append([])
        turns[-1].append(message)
    return list(messages[:first]), turns


def _weight(message: Message) -> str:
    calls = "".join(tool_text.written(call.name, call.arguments) for call in message.tool_calls)
    return f"{message.role}\n{_heard(message)}{calls}\n"


def _cut(
    template: ChatTemplate,
    messages: list[Message],
    tools: Sequence[Tool],
    budget_tokens: int,
    count: Callable[[str], int],
) -> Fitted:
    """Take the middle out of the longest messages, one after the other, until the prompt fits."""
    kept = list(messages)
    by_length = sorted(range(len(kept)), key=lambda i: len(_heard(kept[i])), reverse=True)
    for done, index in enumerate(by_length, start=1):
        whole = _heard(kept[index])

        def with_chars(chars: int, index: int = index, whole: str = whole) -> str:
            half = chars // 2
            short = whole[: chars - half] + ELLIPSIS + whole[len(whole) - half :]
            kept[index] = msgspec.structs.replace(kept[index], parts=[TextPart(short)])
            return template.render(kept, tools)

        if count(with_chars(0)) > budget_tokens:
            continue
        low, high = 0, len(whole)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if count(with_chars(middle)) <= budget_tokens else (low, middle)
        return Fitted(with_chars(low), cut=done)
    raise BadPrompt(
        f"The prompt does not fit into {budget_tokens} tokens even with every message cut: "
        "give fewer or shorter tools and messages, or a larger context_tokens."
    )


def continued(
    prompt_ids: list[int], prefix: str, prompt: str, encode: Callable[[str], list[int]]
) -> list[int]:
    """Token ids of `prompt` with the beginning of the answer, `prefix`, behind it.

    Encoded as one text where that leaves the prompt's tokens as they were (it spares word-start marks inside the
    answer), else apart.
    """
    if not prefix:
        return prompt_ids
    whole = encode(prompt + prefix)
    return whole if whole[: len(prompt_ids)] == prompt_ids else prompt_ids + encode(prefix)
