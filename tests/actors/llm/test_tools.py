"""Function calls: what is shown, what is forced, and that no tag is ever shown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.llm import tools
from actors.messages import LlmRequest, Message, TextPart, Tool

WEATHER = Tool(
    "get_weather",
    "Weather.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
TIMER = Tool("set_timer", "Timer.", {"type": "object", "properties": {"minutes": {"type": "integer"}}})


def request(choice: str, given_tools: list[Tool] | None = None) -> LlmRequest:
    given_tools = [WEATHER, TIMER] if given_tools is None else given_tools
    return LlmRequest([Message("user", [TextPart("hi")])], tools=given_tools, tool_choice=choice)


def show(pieces: list[str]) -> tuple[str, bool]:
    visible = tools.VisibleText()
    text = ""
    for piece in pieces:
        text += visible.feed(piece)
        if visible.opened:
            return text, True
    return text + visible.rest(), False


@given(st.text(alphabet="<tool_call> /x\n"), st.data())
def test_text_without_a_tag_is_shown_whole_however_it_is_cut(text: str, data: st.DataObject) -> None:
    if tools.OPENING in text:
        return
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert show(pieces) == (text, False)


@given(st.text(alphabet="abc <>"), st.data())
def test_nothing_of_a_call_is_shown_however_it_is_cut(before: str, data: st.DataObject) -> None:
    text = f'{before}\n<tool_call>\n{{"name": "x"}}'
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert show(pieces) == (before.rstrip(), True)


def test_what_may_become_a_tag_waits() -> None:
    visible = tools.VisibleText()
    assert visible.feed("Fine. <tool_") == "Fine."
    assert visible.feed("box>") == " <tool_box>"


def test_tool_choice_decides_what_is_shown_and_forced() -> None:
    assert tools.shown(request("none")) == []
    assert tools.forced(request("none")) == []
    assert tools.forced(request("auto")) == []
    assert tools.forced(request("required")) == [WEATHER, TIMER]
    assert tools.forced(request("function:set_timer")) == [TIMER]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (request("function:set_alarm"), "get_weather, set_timer"),
        (request("required", []), "no tools"),
        (request("always"), "required or function:NAME"),
    ],
)
def test_a_choice_that_cannot_be_followed_says_why(asked: LlmRequest, says: str) -> None:
    with pytest.raises(tools.BadToolChoice, match=says):
        tools.forced(asked)


def test_the_schema_of_one_tool_names_it_and_closes_its_arguments() -> None:
    schema = tools.call_schema([WEATHER])
    assert schema["properties"]["name"] == {"const": "get_weather"}
    assert schema["required"] == ["name", "arguments"]
    assert schema["properties"]["arguments"]["additionalProperties"] is False
    assert "additionalProperties" not in WEATHER.parameters


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    arguments = tools.call_schema([Tool("now", "Time.", {})])["properties"]["arguments"]
    assert arguments == {"type": "object", "properties": {}, "additionalProperties": False}


def test_references_of_several_tools_do_not_meet() -> None:
    def tool(name: str, kind: str) -> Tool:
        parameters = {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/A"}},
            "$defs": {"A": {"type": kind}},
        }
        return Tool(name, "", parameters)

    schema = tools.call_schema([tool("x", "string"), tool("y", "integer")])
    assert schema["$defs"] == {"x.A": {"type": "string"}, "y.A": {"type": "integer"}}
    assert schema["anyOf"][1]["properties"]["arguments"]["properties"]["a"] == {"$ref": "#/$defs/y.A"}


def test_a_call_that_was_cut_off_does_not_parse() -> None:
    whole = '{"name": "get_weather", "arguments": {"city": "Zürich"}}'
    call = tools.parse_call(whole)
    assert call.name == "get_weather"
    assert json.loads(call.arguments) == {"city": "Zürich"}
    with pytest.raises(ValueError, match=r"."):
        tools.parse_call(whole[:-4])
