"""Reasoning and tool-call syntax never reach the transcript, however the model's text is cut into deltas."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestration.session.visible import VisibleText

CASES = [
    ("Hello there.", "Hello there."),
    ("  Hello", "  Hello"),
    ("<think>hm. Let me see</think>\n\nHello", "Hello"),
    ("\n<think>\n</think>\nHello", "\nHello"),
    ("<THINK>a</Think>Hi", "Hi"),
    ("Well <think>a</think> yes", "Well  yes"),
    ("Hi <think>never closed", "Hi "),
    ("Hi <reasoning>a < b</reasoning>there", "Hi there"),
    ("rest of a thought</think>Hi", "rest of a thoughtHi"),
    ("[THINK]a[/THINK]Hi", "Hi"),
    ("◁think▷a◁/think▷Hi", "Hi"),
    ("The `<think>` tag", "The `<think>` tag"),
    ('Sure.<tool_call>{"name": "f"}</tool_call> Done', "Sure. Done"),
    ('<tool_call>\n{"a": "<b>"}', ""),
    ('<function=get>{"a": 1}</function>ok', "ok"),
    ('<function_calls><invoke name="f"></invoke></function_calls>ok', "ok"),
    ('<invoke name="f">x</invoke>ok', "ok"),
    ('[TOOL_CALLS][{"name": "f", "arguments": {}}]', ""),
    ("<|python_tag|>f.call()<|eom_id|>ok", "ok"),
    ("<|tool_call_start|>[f()]<|tool_call_end|>ok", "ok"),
    ("<|tool_call>call:f{}<tool_call|>ok", "ok"),
    ("<｜tool▁calls▁begin｜>f<｜tool▁calls▁end｜>ok", "ok"),
    ("```tool_code\nf()\n```ok", "ok"),
    ("```py\nf()\n```ok", "```py\nf()\n```ok"),
    (
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hi<|return|>",
        "Hi",
    ),
    ('<|channel|>commentary to=f<|message|>{"a":1}<|call|>', ""),
    ("<|channel|>other", "other"),
    ("Hi<|im_end|>", "Hi"),
    ("Hi<|eot_id|", "Hi<|eot_id|"),
    ("Hi<|channel|>", "Hi"),
    ('{"name": "get_weather", "arguments": {"city": "Paris"}}', ""),
    ('\n{"name":"f","parameters":{}}', "\n"),
    ('{"name": "John", "age": 5}', '{"name": "John", "age": 5}'),
    ('{"' + "a" * 300, '{"' + "a" * 300),
    ("{x} is a set", "{x} is a set"),
    ('so {"name": "f", "arguments": 1}', 'so {"name": "f", "arguments": 1}'),
    ("5 < 10, I <3 you, x <| y, a <b> c", "5 < 10, I <3 you, x <| y, a <b> c"),
    ("<thi", "<thi"),
    ("<thinner>", "<thinner>"),
    ("<<think>a</think>b", "<b"),
    ("a [link](x) [TOOL", "a [link](x) [TOOL"),
    ("İ<think>İ</think>x", "İx"),
]


def visible(deltas: list[str]) -> str:
    text = VisibleText()
    return "".join(text.feed(delta) for delta in deltas) + text.finish()


@pytest.mark.parametrize(("raw", "shown"), CASES)
def test_hidden_text_is_not_part_of_the_transcript(raw: str, shown: str) -> None:
    assert visible([raw]) == shown
    assert visible(list(raw)) == shown


def test_a_possible_tag_waits_until_it_is_decided() -> None:
    text = VisibleText()
    assert text.feed("so <thi") == "so "
    assert text.feed("s") == "<this"
    assert text.feed("<thin") == ""
    assert text.finish() == "<thin"


def test_ordinary_text_is_shown_at_once() -> None:
    text = VisibleText()
    assert text.feed("Hello, th") == "Hello, th"


MARKUP = [
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<",
    ">",
    "<|",
    "|>",
    "[",
    "`",
    "{",
    '"name":',
    " ",
    "a",
]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(MARKUP), max_size=12).map("".join), st.data())
def test_how_the_text_is_cut_into_deltas_does_not_matter(raw: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=5)))
    edges = [0, *cuts, len(raw)]
    deltas = [raw[begin:end] for begin, end in pairwise(edges)]
    assert visible(deltas) == visible([raw])


def test_an_endless_hidden_block_takes_no_memory() -> None:
    text = VisibleText()
    text.feed("<think>" + "so on and on " * 1_000)
    assert max(len(value) for value in vars(text).values() if isinstance(value, str)) < 200
