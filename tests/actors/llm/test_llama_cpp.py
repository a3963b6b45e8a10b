"""The llama.cpp backend against a server with scripted answers."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actors.backend import Batch, Key
from actors.batch import run
from actors.llm.llama_cpp import LlamaCpp, LlamaCppOptions
from actors.llm.prompt import ChatTemplate
from actors.messages import Failed, LlmDone, LlmRequest, LlmText, LlmToolCall, Message, TextPart, Tool

TOOL = Tool("go", "Goes.", {"type": "object", "properties": {"far": {"type": "boolean"}}})
CALL = '{"name": "go", "arguments": {"far": true}}'


class Characters:
    """Each character is a token."""

    def encode(self, text: str) -> list[int]:
        return [ord(character) for character in text]

    def count(self, text: str) -> int:
        return len(text)


class ScriptedServer:
    """Speaks like xllamacpp's: each request says the pieces that `script` gives for its prompt."""

    def __init__(self, script: Callable[[str, dict[str, Any]], list[str]]) -> None:
        self._script = script
        self.bodies: list[dict[str, Any]] = []
        self.pieces_said = 0
        self.together = 0
        self.most_together = 0
        self._lock = threading.Lock()
        self.gate = threading.Semaphore(10**6)
        """Lets one more piece be said."""

    def handle_completions(self, body: str, on_piece: Callable[[str], bool]) -> None:
        fields = json.loads(body)
        with self._lock:
            self.bodies.append(fields)
            self.together += 1
            self.most_together = max(self.most_together, self.together)
        try:
            self._say(fields, on_piece)
        finally:
            with self._lock:
                self.together -= 1

    def _say(self, fields: dict[str, Any], on_piece: Callable[[str], bool]) -> None:
        prompt = "".join(map(chr, fields["prompt"]))
        choice = {"text": "", "finish_reason": None}
        on_piece(json.dumps({"choices": [choice], "prompt_progress": {"total": len(prompt), "cache": 7}}))
        pieces = self._script(prompt, fields)
        for number, piece in enumerate(pieces[: fields["max_tokens"]], start=1):
            self.gate.acquire()
            self.pieces_said += 1
            said = {"choices": [{**choice, "text": piece}], "timings": {"predicted_n": number}}
            if on_piece(json.dumps(said)):
                return
        reason = "length" if len(pieces) > fields["max_tokens"] else "stop"
        on_piece(json.dumps({"choices": [{"text": "", "finish_reason": reason}]}))


def backend(
    script: Callable[[str, dict[str, Any]], list[str]], **options: Any
) -> tuple[LlamaCpp, ScriptedServer]:
    made = LlamaCpp(LlamaCppOptions(context_tokens=4096, **options))
    server = ScriptedServer(script)
    made.use(server, Characters(), ChatTemplate(None), 4096)
    return made, server


def ask(text: str = "Hello", **fields: Any) -> LlmRequest:
    return LlmRequest([Message("user", [TextPart(text)])], **fields)


def hello(prompt: str, fields: dict[str, Any]) -> list[str]:
    return ["He", "llo", "!"]


def test_pieces_come_as_they_are_said_with_usage_at_the_end() -> None:
    made, server = backend(hello)
    (results,) = run(made.generate, [ask(temperature=0.5, seed=3)])
    assert results[:3] == [LlmText("He"), LlmText("llo"), LlmText("!")]
    prompt = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    assert results[3] == LlmDone("stop", len(prompt), 7, 3)
    assert (server.bodies[0]["temperature"], server.bodies[0]["seed"]) == (0.5, 3)


def test_a_resumed_answer_goes_on_behind_what_was_delivered() -> None:
    made, server = backend(lambda prompt, _: [" there"] if prompt.endswith("assistant\nHello") else ["wrong"])
    (results,) = run(made.generate, [ask(delivered="Hello", delivered_tokens=2, max_tokens=3)])
    assert results[0] == LlmText(" there")
    assert results[-1].output_tokens == 3
    assert server.bodies[0]["max_tokens"] == 1


def test_no_more_requests_run_than_there_are_slots() -> None:
    made, server = backend(hello, slots=2)
    results = run(made.generate, [ask(str(i)) for i in range(7)])
    assert all(isinstance(answer[-1], LlmDone) for answer in results)
    assert server.most_together <= 2


def test_a_request_joins_while_another_runs() -> None:
    made, server = backend(lambda prompt, _: ["a"] * 50 if "first" in prompt else ["b"])
    server.gate = threading.Semaphore(1)
    batch: Batch[LlmRequest] = Batch([("first", ask("first"))])
    order: list[Key] = []
    for key, _ in made.generate(batch):
        if not order:
            batch.add("second", ask("second"))
        order.append(key)
        if order.count("second") == 2:
            server.gate.release(1000)
        else:
            server.gate.release()
    assert order.index("second") < len(order) - 10


def test_a_cancelled_request_stops_at_its_next_token() -> None:
    made, server = backend(lambda *_: ["a"] * 1000)
    server.gate = threading.Semaphore(3)
    batch: Batch[LlmRequest] = Batch([(0, ask())])
    texts = 0
    for _, result in made.generate(batch):
        assert isinstance(result, LlmText)
        texts += 1
        if texts == 3:
            batch.cancel(0)
            server.gate.release(1000)
    assert (texts, server.pieces_said) == (3, 4)


def test_the_next_request_waits_for_the_slot_of_a_cancelled_one_which_holds_its_prompt() -> None:
    made, server = backend(lambda *_: ["a"] * 3, slots=2)
    server.gate = threading.Semaphore(1)
    looks = 0
    decoding: list[int] = []

    class Watched(Batch[LlmRequest]):
        def take(self, limit: int | None = None) -> list[tuple[Key, LlmRequest]]:
            nonlocal looks
            looks += self.cancelled("old")
            if looks == 3:
                server.gate.release(1000)
            taken = super().take(limit)
            decoding.extend(server.together for _ in taken)
            return taken

    batch = Watched([("old", ask("old"))])
    for key, _ in made.generate(batch):
        if key == "old":
            batch.cancel("old")
            batch.add("new", ask("new"))
    assert decoding == [0, 0]


def test_a_generator_that_is_left_stops_its_slots() -> None:
    made, server = backend(lambda *_: ["a"] * 1000)
    server.gate = threading.Semaphore(1)
    running = made.generate(Batch([(0, ask())]))
    next(running)
    server.gate.release()
    running.close()  # type: ignore[attr-defined]
    assert server.pieces_said <= 2
    assert server.together == 0


def calling(prompt: str, fields: dict[str, Any]) -> list[str]:
    if "json_schema" in fields:
        return [CALL[:9], CALL[9:]]
    return [] if CALL in prompt else ["Sure.", " <tool", "_call>", "\n{bad"]


def test_a_call_in_the_text_is_decoded_again_under_its_schema() -> None:
    made, server = backend(calling)
    (results,) = run(made.generate, [ask(tools=[TOOL])])
    assert results[:2] == [LlmText("Sure."), LlmToolCall("go", '{"far": true}')]
    assert isinstance(results[2], LlmDone)
    assert results[2].finish_reason == "tool_calls"
    free, forced, after = server.bodies
    assert "json_schema" not in free
    assert "".join(map(chr, forced["prompt"])).endswith("assistant\nSure.\n<tool_call>\n")
    assert forced["repeat_penalty"] == 1.0
    assert "".join(map(chr, after["prompt"])).endswith(f"{CALL}\n</tool_call>")


def test_a_forced_call_is_one_request_under_a_schema() -> None:
    made, server = backend(calling)
    (results,) = run(made.generate, [ask(tools=[TOOL], tool_choice="function:go")])
    assert results[0] == LlmToolCall("go", '{"far": true}')
    assert len(server.bodies) == 1


def test_what_the_server_refuses_fails_alone() -> None:
    class Refusing(ScriptedServer):
        def _say(self, fields: dict[str, Any], on_piece: Callable[[str], bool]) -> None:
            if ord("?") in fields["prompt"]:
                on_piece(json.dumps({"error": {"code": 400, "message": "no such thing"}}))
            else:
                super()._say(fields, on_piece)

    made, _ = backend(hello)
    made.use(Refusing(hello), Characters(), ChatTemplate(None), 4096)
    refused, answered, empty = run(made.generate, [ask("?"), ask("!"), LlmRequest([])])
    assert refused == [Failed("LLM: llama.cpp refused the request: no such thing")]
    assert isinstance(answered[-1], LlmDone)
    assert empty == [Failed("LLM: The request has no messages.")]


def test_options_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="slots is 0"):
        LlamaCppOptions(slots=0)
    with pytest.raises(ValueError, match="top_p"):
        LlamaCppOptions(top_p=2)


def test_a_dtype_other_than_the_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="choose auto"):
        LlamaCpp(LlamaCppOptions(model_name=str(tmp_path))).load("cpu", "float16", 1)
