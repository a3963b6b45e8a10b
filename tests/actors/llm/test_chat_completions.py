"""Chat completions: what is sent, what becomes of the stream, cancels, and answers that go on elsewhere."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from actors.batch import Batch, run
from actors.llm.chat_completions import ChatCompletions, ChatCompletionsOptions
from actors.llm.remote import Unrepeated
from actors.messages import (
    AudioPart,
    Failed,
    ImagePart,
    LlmDone,
    LlmRequest,
    LlmText,
    LlmToolCall,
    Message,
    TextPart,
    Tool,
    ToolCall,
)
from tests.actors.scripted_server import BREAK_OFF, WAIT, Scripted, error, scripted_server, sse

WEATHER = Tool("get_weather", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
QUESTION = [Message("system", [TextPart("Be brief.")]), Message("user", [TextPart("How are you?")])]
USAGE = {
    "choices": [],
    "usage": {
        "prompt_tokens": 12,
        "completion_tokens": 5,
        "total_tokens": 17,
        "prompt_tokens_details": {"cached_tokens": 4},
    },
}


@pytest.fixture(scope="module")
def running() -> Iterator[Scripted]:
    with scripted_server() as server:
        yield server


@pytest.fixture
def server(running: Scripted) -> Scripted:
    running.steps.clear()
    running.received.clear()
    running.left.clear()
    running.most_at_once = 0
    return running


def chunk(finish_reason: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def piece(index: int, name: str | None = None, arguments: str = "") -> dict[str, Any]:
    return chunk(tool_calls=[{"index": index, "function": {"name": name, "arguments": arguments}}])


def said(*texts: str) -> Any:
    return sse(*(chunk(content=text) for text in texts), chunk("stop"), USAGE, "[DONE]")


def backend(server: Scripted, **options: Any) -> ChatCompletions:
    made = ChatCompletions(
        ChatCompletionsOptions(base_url=server.base_url, retry_delay=0.001, model_name="m", **options)
    )
    made.load("cpu", "auto", 1)
    return made


def answer(server: Scripted, request: LlmRequest | None = None, **options: Any) -> list[Any]:
    made = backend(server, **options)
    ((*results,),) = run(made.generate, [request or LlmRequest(QUESTION)])
    made.close()
    return results


def sent(server: Scripted, request: LlmRequest | None = None, **options: Any) -> dict[str, Any]:
    server.says(said("Hi."))
    answer(server, request, **options)
    body: dict[str, Any] = server.received[-1].json
    return body


def test_text_comes_piece_by_piece_and_then_what_it_cost(server: Scripted) -> None:
    server.says(said("I am ", "fine."))
    assert answer(server) == [LlmText("I am "), LlmText("fine."), LlmDone("stop", 12, 4, 5)]
    assert server.received[0].path == "/v1/chat/completions"


def test_without_usage_pieces_are_counted(server: Scripted) -> None:
    server.says(sse(chunk(content="I"), chunk(content=" am"), chunk("length"), "[DONE]"))
    assert answer(server)[-1] == LlmDone("length", output_tokens=2)


def test_reasoning_is_no_answer_but_a_refusal_is(server: Scripted) -> None:
    server.says(sse(chunk(reasoning_content="Hm."), chunk(refusal="I won't."), chunk("stop"), "[DONE]"))
    assert answer(server)[0] == LlmText("I won't.")


def test_calls_are_put_together_from_their_pieces(server: Scripted) -> None:
    server.says(
        sse(
            chunk(content="Let me see."),
            piece(0, "get_weather", '{"ci'),
            piece(0, None, 'ty": "Oslo"}'),
            piece(1, "get_time"),
            chunk("tool_calls"),
            "[DONE]",
        )
    )
    assert answer(server, LlmRequest(QUESTION, tools=[WEATHER])) == [
        LlmText("Let me see."),
        LlmToolCall("get_weather", '{"city": "Oslo"}'),
        LlmToolCall("get_time", "{}"),
        LlmDone("tool_calls", output_tokens=1),
    ]


def test_calls_that_a_server_does_not_number_stay_apart(server: Scripted) -> None:
    def unnumbered(**function: str) -> dict[str, Any]:
        return chunk(tool_calls=[{"function": function}])

    server.says(
        sse(
            unnumbered(name="get_weather", arguments='{"ci'),
            unnumbered(arguments='ty": "Oslo"}'),
            unnumbered(name="get_weather", arguments='{"city": "Rome"}'),
            chunk("tool_calls"),
            "[DONE]",
        )
    )
    assert answer(server)[:2] == [
        LlmToolCall("get_weather", '{"city": "Oslo"}'),
        LlmToolCall("get_weather", '{"city": "Rome"}'),
    ]


def test_a_call_with_broken_arguments_fails_and_one_that_was_cut_off_is_left_out(server: Scripted) -> None:
    server.says(sse(piece(0, "get_weather", "Oslo"), chunk("tool_calls"), "[DONE]"))
    (failed,) = answer(server)
    assert (
        isinstance(failed, Failed) and "get_weather with arguments that are no JSON object" in failed.message
    )
    server.says(sse(piece(0, "get_weather", '{"ci'), chunk("length"), "[DONE]"))
    assert answer(server) == [LlmDone("length")]


def test_a_whole_answer_is_taken_where_the_server_is_not_to_stream(server: Scripted) -> None:
    from starlette.responses import JSONResponse

    function = {"name": "get_weather", "arguments": "{}"}
    message = {"role": "assistant", "content": "Well.", "tool_calls": [{"id": "1", "function": function}]}
    choices = [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
    server.says(JSONResponse({"choices": choices, "usage": USAGE["usage"]}))
    text, call, done = answer(server, stream=False)
    assert (text, call) == (LlmText("Well."), LlmToolCall("get_weather", "{}"))
    assert done == LlmDone("tool_calls", 12, 4, 5)
    assert "stream" not in server.received[0].json


def test_the_conversation_is_sent_as_messages(server: Scripted) -> None:
    messages = [
        *QUESTION,
        Message("assistant", [], [ToolCall("c1", "get_weather", "")]),
        Message("tool", [TextPart("rain")], [], "c1"),
        Message("user", [TextPart("See: "), ImagePart("data:image/png;base64,AA")]),
    ]
    body = sent(server, LlmRequest(messages, max_tokens=40, temperature=0.5, seed=7))
    assert body["model"] == "m" and body["stream"] and body["stream_options"] == {"include_usage": True}
    assert (body["max_tokens"], body["temperature"], body["seed"]) == (40, 0.5, 7)
    assert body["messages"][:2] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "How are you?"},
    ]
    function = {"name": "get_weather", "arguments": "{}"}
    assert body["messages"][2]["tool_calls"] == [{"type": "function", "id": "c1", "function": function}]
    assert body["messages"][3] == {"role": "tool", "content": "rain", "tool_call_id": "c1"}
    assert [part["type"] for part in body["messages"][4]["content"]] == ["text", "image_url"]


@pytest.mark.parametrize(
    "choice, wanted",
    [
        ("auto", "auto"),
        ("required", "required"),
        ("function:get_weather", {"type": "function", "function": {"name": "get_weather"}}),
    ],
)
def test_tools_and_their_choice_are_sent(server: Scripted, choice: str, wanted: Any) -> None:
    body = sent(server, LlmRequest(QUESTION, tools=[WEATHER], tool_choice=choice))
    assert body["tool_choice"] == wanted
    assert body["tools"][0]["function"]["parameters"] == WEATHER.parameters


def test_where_no_tool_may_be_called_none_is_shown(server: Scripted) -> None:
    body = sent(server, LlmRequest(QUESTION, tools=[WEATHER], tool_choice="none"))
    assert "tools" not in body and "tool_choice" not in body


def test_a_choice_that_cannot_be_followed_fails_without_asking(server: Scripted) -> None:
    (failed,) = answer(server, LlmRequest(QUESTION, tools=[WEATHER], tool_choice="function:other"))
    assert isinstance(failed, Failed) and "'other'" in failed.message
    assert not server.received


def test_reasoning_is_off_by_the_template_or_by_effort_and_options_add_fields(server: Scripted) -> None:
    off = {"enable_thinking": False}
    assert sent(server)["chat_template_kwargs"] == off
    assert "chat_template_kwargs" not in sent(server, disable_thinking=False)
    body = sent(server, reasoning_effort="none", extra_body={"top_k": 5})
    assert body["reasoning_effort"] == "none" and body["top_k"] == 5
    assert "chat_template_kwargs" not in body


def test_openai_itself_gets_no_field_that_it_refuses() -> None:
    made = ChatCompletions(ChatCompletionsOptions(base_url="https://api.openai.com/v1", api_key="x"))
    made.load("cpu", "auto", 1)
    body = made._body(LlmRequest(QUESTION, max_tokens=9), made._remote.endpoints[0])
    assert body["extra_body"] == {} and body["max_completion_tokens"] == 9 and "max_tokens" not in body
    made.close()


def test_a_model_that_hears_gets_the_sound_and_others_its_words(server: Scripted) -> None:
    heard = [Message("user", [AudioPart(b"\1\0" * 800, "hello")])]
    assert sent(server, LlmRequest(heard))["messages"] == [{"role": "user", "content": "hello"}]
    (part,) = sent(server, LlmRequest(heard), audio_input=True)["messages"][0]["content"]
    assert part["type"] == "input_audio" and part["input_audio"]["format"] == "wav"
    wav = base64.b64decode(part["input_audio"]["data"])
    assert wav[:4] == b"RIFF" and wav[44:] == b"\1\0" * 800


def test_sound_is_made_a_wav_once_for_each_asking(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []

    def counted(pcm: bytes, rate_hz: int) -> bytes:
        made.append(pcm)
        return b"RIFF"

    monkeypatch.setattr("actors.llm.remote.wav", counted)
    heard = LlmRequest([Message("user", [AudioPart(b"\1\0" * 800)])])
    sent(server, heard, audio_input=True)
    assert len(made) == 1


def test_sound_that_nobody_has_heard_fails_and_names_the_flags(server: Scripted) -> None:
    (failed,) = answer(server, LlmRequest([Message("user", [AudioPart(b"\1\0" * 800)])]))
    assert isinstance(failed, Failed)
    assert "--llm_audio_input" in failed.message and "--stt" in failed.message
    assert not server.received


def test_a_cancel_closes_the_connection_at_once_and_the_others_go_on(server: Scripted) -> None:
    server.says(sse(chunk(content="One"), WAIT), said("Two"))
    made = backend(server)
    batch: Batch[LlmRequest] = Batch([("cancelled", LlmRequest(QUESTION))])
    results = []
    for key, result in made.generate(batch):
        results.append((key, result))
        if len(results) == 1:
            batch.add("other", LlmRequest(QUESTION))
        if isinstance(result, LlmDone):
            batch.cancel("cancelled")
    made.close()
    assert server.left.wait(10)
    assert server.most_at_once <= 2
    assert [result for key, result in results if key == "cancelled"] == [LlmText("One")]
    assert results[-1][0] == "other"


def test_requests_are_answered_side_by_side_as_many_as_allowed(server: Scripted) -> None:
    server.says(sse(chunk(content="One"), WAIT), sse(chunk(content="Two"), WAIT), said("Three"))
    made = backend(server, max_concurrency=2)
    assert made.capabilities.continuous and made.capabilities.max_batch == 2
    batch: Batch[LlmRequest] = Batch((key, LlmRequest(QUESTION)) for key in "abc")
    came = []
    for key, _ in made.generate(batch):
        came.append(key)
        if set(came) == {"a", "b"}:
            assert len(server.received) == 2, "the third waits for its place"
            batch.cancel("a")
        if key == "c":
            batch.cancel("b")
    made.close()
    assert set(came) == {"a", "b", "c"}


def test_an_answer_that_breaks_off_goes_on_at_the_next_server(server: Scripted) -> None:
    server.says(
        sse(chunk(content="I am "), chunk(content="fi"), BREAK_OFF),
        error(404),
        said("ne", " now."),
    )
    fallback = (f"{server.base_url} other",)
    results = answer(server, fallback=fallback, retries=1, resume_body={"continue_final_message": True})
    assert "".join(each.text for each in results if isinstance(each, LlmText)) == "I am fine now."
    assert results[-1] == LlmDone("stop", 12, 4, 5 + 2)
    resumed = server.received[-1].json
    assert resumed["messages"][-1] == {"role": "assistant", "content": "I am fi"}
    assert resumed["continue_final_message"] is True and resumed["model"] == "other"
    assert "continue_final_message" not in server.received[0].json


def test_a_stream_without_an_end_is_broken_off(server: Scripted) -> None:
    server.says(sse(chunk(content="I am"), "[DONE]"), said(" fine."))
    assert [each.text for each in answer(server)[:-1]] == ["I am", " fine."]


def test_an_answer_whose_end_has_come_is_not_asked_for_again(server: Scripted) -> None:
    server.says(sse(chunk(content="I am fine."), chunk("stop"), BREAK_OFF))
    assert answer(server) == [LlmText("I am fine."), LlmDone("stop", output_tokens=1)]
    assert len(server.received) == 1


def test_a_page_instead_of_an_answer_fails(server: Scripted) -> None:
    from starlette.responses import HTMLResponse

    for stream in (False, True):
        server.says(HTMLResponse("<html>Welcome</html>"))
        (failed,) = answer(server, stream=stream, retries=0)
        assert isinstance(failed, Failed) and " answer " in failed.message


def test_a_replacement_goes_on_behind_what_was_delivered(server: Scripted) -> None:
    server.says(said("I am", " fine."))
    request = LlmRequest(QUESTION, delivered="I am", delivered_tokens=2)
    assert answer(server, request) == [LlmText(" fine."), LlmDone("stop", 12, 4, 7)]


def test_calls_that_were_delivered_are_not_made_again(server: Scripted) -> None:
    request = LlmRequest(QUESTION, delivered_calls=[LlmToolCall("get_weather", "{}")])
    assert answer(server, request) == [LlmDone("tool_calls")]
    assert not server.received


@pytest.mark.parametrize(
    "beginning, pieces, new",
    [
        ("", ["a", "b"], "ab"),
        ("Hello", ["Hel", "lo the", "re"], " there"),
        ("Hello", ["Help", "!"], "Help!"),
        ("Hello", [" there"], " there"),
        ("Hello", ["Hel"], "Hel"),
    ],
)
def test_a_repeated_beginning_is_taken_out_and_nothing_else(
    beginning: str, pieces: list[str], new: str
) -> None:
    unrepeated = Unrepeated(beginning)
    assert "".join([*(unrepeated.feed(each) for each in pieces), unrepeated.rest()]) == new


def test_warm_up_asks_for_a_word(server: Scripted) -> None:
    server.says(said("Hello."))
    made = backend(server)
    made.warmup()
    made.close()
    assert json.loads(server.received[0].body)["messages"][-1]["role"] == "user"
