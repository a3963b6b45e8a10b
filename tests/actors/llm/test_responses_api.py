"""The responses API: what is sent, and what becomes of the events that its documents describe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from actors.batch import Batch, run
from actors.llm.responses_api import ResponsesApi, ResponsesApiOptions
from actors.messages import (
    AudioPart,
    Failed,
    LlmDone,
    LlmRequest,
    LlmText,
    LlmToolCall,
    Message,
    TextPart,
    Tool,
    ToolCall,
)
from tests.actors.scripted_server import WAIT, Scripted, scripted_server, sse

WEATHER = Tool("get_weather", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
QUESTION = [Message("system", [TextPart("Be brief.")]), Message("user", [TextPart("How are you?")])]
USAGE = {
    "input_tokens": 12,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 17,
}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "get_weather",
    "arguments": '{"city": "Oslo"}',
    "status": "completed",
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
    return running


def response(status: str = "completed", output: Any = (), **rest: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": status,
        "output": list(output),
        "error": None,
        "incomplete_details": None,
        "usage": USAGE,
        **rest,
    }


def delta(text: str, kind: str = "output_text") -> dict[str, Any]:
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    return {"type": f"response.{kind}.delta", "delta": text, "sequence_number": 4, **place}


def item_done(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "item": item, "output_index": 0, "sequence_number": 5}


def ended(status: str = "completed", output: Any = (), **rest: Any) -> dict[str, Any]:
    body = response(status, output, **rest)
    return {"type": f"response.{status}", "response": body, "sequence_number": 9}


def begun() -> list[dict[str, Any]]:
    body = response("in_progress", usage=None)
    return [
        {"type": "response.created", "response": body, "sequence_number": 0},
        {"type": "response.in_progress", "response": body, "sequence_number": 1},
    ]


def said(*texts: str) -> Any:
    return sse(*begun(), *(delta(text) for text in texts), ended())


def backend(server: Scripted, **options: Any) -> ResponsesApi:
    made = ResponsesApi(
        ResponsesApiOptions(base_url=server.base_url, retry_delay=0.001, model_name="m", **options)
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
    assert server.received[0].path == "/v1/responses"


def test_a_refusal_is_spoken_and_reasoning_is_not(server: Scripted) -> None:
    thought = {**delta("Hm.", "reasoning_text")}
    server.says(sse(*begun(), thought, delta("I won't.", "refusal"), ended()))
    assert answer(server)[0] == LlmText("I won't.")


def test_a_call_comes_when_it_is_complete(server: Scripted) -> None:
    arguments = {"type": "response.function_call_arguments.delta", "delta": "{", "item_id": "fc_1"}
    server.says(
        sse(
            *begun(),
            {**arguments, "output_index": 0, "sequence_number": 3},
            item_done(CALL),
            ended(output=[CALL]),
        )
    )
    assert answer(server) == [
        LlmToolCall("get_weather", '{"city": "Oslo"}'),
        LlmDone("tool_calls", 12, 4, 5),
    ]


def test_a_call_with_broken_arguments_fails(server: Scripted) -> None:
    server.says(sse(*begun(), item_done({**CALL, "arguments": "Oslo"}), ended()))
    (failed,) = answer(server)
    assert isinstance(failed, Failed) and "no JSON object" in failed.message


@pytest.mark.parametrize(
    "reason, finish", [("max_output_tokens", "length"), ("content_filter", "content_filter")]
)
def test_an_incomplete_answer_says_why(server: Scripted, reason: str, finish: str) -> None:
    server.says(sse(*begun(), delta("I"), ended("incomplete", incomplete_details={"reason": reason})))
    assert answer(server)[-1] == LlmDone(finish, 12, 4, 5)  # type: ignore[arg-type]


def test_a_failed_answer_is_asked_for_again_behind_what_came(server: Scripted) -> None:
    broken = {"code": "server_error", "message": "out of luck"}
    server.says(
        sse(*begun(), delta("I am"), ended("failed", error=broken)),
        sse({"type": "error", "code": "x", "message": "again", "param": None, "sequence_number": 0}),
        said(" fine."),
    )
    assert [each.text for each in answer(server)[:-1]] == ["I am", " fine."]
    assert server.received[-1].json["input"][-1] == {"role": "assistant", "content": "I am"}
    server.says(*[sse(*begun(), ended("failed", error=broken))] * 3)
    (failed,) = answer(server)
    assert isinstance(failed, Failed) and "out of luck" in failed.message


def test_a_whole_answer_is_taken_where_the_server_is_not_to_stream(server: Scripted) -> None:
    from starlette.responses import JSONResponse

    content = [{"type": "output_text", "text": "Well.", "annotations": []}]
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}
    server.says(JSONResponse(response(output=[message, CALL])))
    text, call, done = answer(server, stream=False)
    assert (text, call) == (LlmText("Well."), LlmToolCall("get_weather", '{"city": "Oslo"}'))
    assert done == LlmDone("tool_calls", 12, 4, 5)


def test_a_page_instead_of_an_answer_fails(server: Scripted) -> None:
    from starlette.responses import HTMLResponse

    for stream in (False, True):
        server.says(HTMLResponse("<html>Welcome</html>"))
        (failed,) = answer(server, stream=stream, retries=0)
        assert isinstance(failed, Failed)


def test_what_a_server_does_not_count_is_none(server: Scripted) -> None:
    server.says(sse(*begun(), delta("Hi."), ended(usage={"output_tokens": 2, "input_tokens_details": {}})))
    assert answer(server)[-1] == LlmDone("stop", 0, 0, 2)


def test_the_conversation_is_sent_as_items_and_nothing_is_stored(server: Scripted) -> None:
    messages = [
        *QUESTION,
        Message("assistant", [TextPart("Let me see.")], [ToolCall("c1", "get_weather", "")]),
        Message("tool", [TextPart("rain")], [], "c1"),
        Message("user", [AudioPart(b"\1\0", "so?")]),
    ]
    request = LlmRequest(messages, tools=[WEATHER], tool_choice="function:get_weather", max_tokens=4)
    body = sent(server, request, reasoning_effort="none", audio_input=True)
    assert body["store"] is False and body["reasoning"] == {"effort": "none"}
    assert body["max_output_tokens"] == 16, "OpenAI's least"
    assert body["input"][:2] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "How are you?"}]},
    ]
    assert body["input"][2] == {"role": "assistant", "content": "Let me see."}
    assert body["input"][3] == {
        "type": "function_call",
        "call_id": "c1",
        "name": "get_weather",
        "arguments": "{}",
    }
    assert body["input"][4] == {"type": "function_call_output", "call_id": "c1", "output": "rain"}
    assert body["input"][5]["content"][0]["type"] == "input_audio"
    assert body["tools"][0]["name"] == "get_weather"
    assert body["tool_choice"] == {"type": "function", "name": "get_weather"}


def test_a_cancel_closes_the_connection_at_once(server: Scripted) -> None:
    server.says(sse(*begun(), delta("One"), WAIT))
    made = backend(server)
    batch: Batch[LlmRequest] = Batch([("a", LlmRequest(QUESTION))])
    for _ in made.generate(batch):
        batch.cancel("a")
    made.close()
    assert server.left.wait(10)
