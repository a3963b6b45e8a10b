"""An answer in segments: text, calls, limits."""

from collections.abc import Iterator

import pytest

from actors.llm.answer import Answer
from actors.llm.prompt import BadPrompt, ChatTemplate
from actors.messages import LlmDone, LlmRequest, LlmText, LlmToolCall, Message, TextPart, Tool

TOOL = Tool("go", "Goes.", {"type": "object", "properties": {"far": {"type": "boolean"}}})
USER = [Message("user", [TextPart("Hello")])]
CALL = '{"name": "go", "arguments": {"far": true}}'


def count(text: str) -> int:
    return len(text.split())


def answer(request: LlmRequest, context: int = 500, max_tokens: int = 50) -> Answer:
    return Answer(request, ChatTemplate(None), count, context, max_tokens)


def decode(it: Answer, scripts: list[list[str]]) -> Iterator[LlmText | LlmToolCall | LlmDone]:
    """Each script is what the model says to one segment, before it stops by itself."""
    for script in scripts:
        assert it.done is None
        left = it.segment().max_tokens
        reason = "stop"
        for piece in script:
            yield from it.feed(piece, 1)
            left -= 1
            if not it.wants_more:
                break
            if not left:
                reason = "length"
                break
        yield from it.end_segment(reason)  # type: ignore[arg-type]
    assert it.done is not None
    yield it.done


def test_plain_text_passes_as_it_comes() -> None:
    results = list(decode(answer(LlmRequest(USER)), [["Hel", "lo", " you", ""]]))
    assert results[:-1] == [LlmText("Hel"), LlmText("lo"), LlmText(" you")]
    assert results[-1] == LlmDone("stop", output_tokens=4)


def test_a_limit_ends_with_length_and_counts_what_was_delivered() -> None:
    it = answer(LlmRequest(USER, max_tokens=5, delivered="One two three", delivered_tokens=3))
    assert it.segment().prefix == "One two three"
    assert list(decode(it, [[" four", " five", " six"]])) == [
        LlmText(" four"),
        LlmText(" five"),
        LlmDone("length", output_tokens=5),
    ]


def test_nothing_is_decoded_when_everything_was_delivered() -> None:
    it = answer(LlmRequest(USER, max_tokens=3, delivered="One two three", delivered_tokens=3))
    assert it.done == LlmDone("length", output_tokens=3)


def test_a_call_in_the_text_is_cut_out_and_decoded_under_its_schema() -> None:
    it = answer(LlmRequest(USER, tools=[TOOL]))
    results = []
    for piece in ("Let", " me", " see.", "\n", "<tool", "_call>\n"):
        assert it.wants_more
        results += it.feed(piece, 1)
    assert "".join(piece.text for piece in results) == "Let me see."
    assert not it.wants_more
    assert it.end_segment("stop") == []
    segment = it.segment()
    assert segment.prefix == "Let me see.\n<tool_call>\n"
    assert segment.schema is not None
    assert segment.schema["properties"]["name"] == {"const": "go"}
    assert it.feed(CALL, 9) == []
    assert it.end_segment("stop") == [LlmToolCall("go", '{"far": true}')]
    assert it.segment().prefix.endswith(f"<tool_call>\n{CALL}\n</tool_call>")
    assert it.segment().schema is None


def test_a_second_call_may_follow_the_first() -> None:
    it = answer(LlmRequest(USER, tools=[TOOL]))
    results = list(decode(it, [["<tool_call>"], [CALL], ["\n<tool_call>"], [CALL], []]))
    assert [type(result) for result in results] == [LlmToolCall, LlmToolCall, LlmDone]
    assert it.done is not None
    assert it.done.finish_reason == "tool_calls"


def test_chatter_behind_a_call_is_not_shown() -> None:
    it = answer(LlmRequest(USER, tools=[TOOL]))
    results = list(decode(it, [["<tool_call>"], [CALL], ["\n", "The result is", " 5"]]))
    assert [type(result) for result in results] == [LlmToolCall, LlmDone]


def test_a_forced_call_begins_inside_the_call_and_ends_with_it() -> None:
    it = answer(LlmRequest(USER, tools=[TOOL], tool_choice="function:go"))
    assert it.segment().prefix == "<tool_call>\n"
    assert it.segment().schema is not None
    results = list(decode(it, [[CALL]]))
    assert results == [LlmToolCall("go", '{"far": true}'), LlmDone("tool_calls", output_tokens=1)]


def test_a_call_cut_off_by_the_limit_is_no_call() -> None:
    it = answer(LlmRequest(USER, tools=[TOOL], tool_choice="required", max_tokens=2))
    assert list(decode(it, [['{"name": ', '"go"', ", "]])) == [LlmDone("length", output_tokens=2)]


def test_tools_that_are_not_shown_make_no_calls() -> None:
    it = answer(LlmRequest(USER, tools=[TOOL], tool_choice="none"))
    results = list(decode(it, [["<tool_call>", CALL]]))
    assert results[:-1] == [LlmText("<tool_call>"), LlmText(CALL)]


def test_tokens_of_text_held_back_count_with_the_text_that_follows() -> None:
    it = answer(LlmRequest(USER, tools=[TOOL]))
    assert it.feed("a <to", 3) == [LlmText("a", 3)]
    assert it.feed("p", 1) == [LlmText(" <top", 1)]


def test_an_answer_ends_where_the_context_does() -> None:
    it = answer(LlmRequest(USER), context=10, max_tokens=50)
    assert it.segment().max_tokens == 10 - count(it.fitted.text)


def test_usage_counts_the_prompt_once() -> None:
    it = answer(LlmRequest(USER, tools=[TOOL], tool_choice="required"))
    it.segment()
    it.began(40, 45)
    it.began(60, 50)
    it.feed(CALL, 7)
    it.end_segment("stop")
    assert it.done == LlmDone("tool_calls", 40, 40, 7)


def test_a_request_without_messages_is_refused() -> None:
    with pytest.raises(BadPrompt, match="no messages"):
        answer(LlmRequest([]))


def test_a_call_that_was_delivered_is_not_made_again() -> None:
    lost = LlmRequest(USER, tools=[TOOL]).resumed([LlmText("Off."), LlmToolCall("go", '{"far": true}')])
    it = answer(lost)
    assert it.segment().prefix == f"Off.\n<tool_call>\n{CALL}\n</tool_call>"
    assert list(decode(it, [[""]])) == [LlmDone("tool_calls", output_tokens=2)]


def test_a_forced_call_that_was_delivered_ends_the_answer() -> None:
    lost = LlmRequest(USER, tools=[TOOL], tool_choice="function:go").resumed(
        [LlmToolCall("go", '{"far": true}')]
    )
    assert answer(lost).done == LlmDone("tool_calls")
