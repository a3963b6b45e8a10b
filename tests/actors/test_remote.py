"""Servers that are asked over HTTP: order, retries, keys, what is said of failures."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.messages import Failed, LlmDone, LlmText
from actors.remote import BrokenOff, Endpoint, Remote, RemoteOptions, _servers
from tests.actors.scripted_server import SILENCE, Scripted, error, scripted_server

KEY = "sk-very-secret"


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Scripted, Scripted]]:
    with scripted_server() as first, scripted_server() as second:
        yield first, second


@pytest.fixture
def servers(running: tuple[Scripted, Scripted]) -> tuple[Scripted, Scripted]:
    for server in running:
        server.steps.clear()
        server.received.clear()
    return running


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


async def post(endpoint: Endpoint, delivered: list[Any]) -> AsyncGenerator[Any, None]:
    reply = await endpoint.client.post("/ask", cast_to=object, body={"model": endpoint.model})
    yield LlmText(str(reply["text"]))
    yield LlmDone("stop")


def ask(options: RemoteOptions, times: int = 1, ask: Any = post) -> list[list[Any]]:
    """The results of each of `times` requests, one after the other."""
    remote = Remote("llm test", options, "model-a")

    async def all_of() -> list[Any]:
        return [result async for result in remote.ask(ask)]

    try:
        return [remote.loop.run_until_complete(all_of()) for _ in range(times)]
    finally:
        remote.close()


def good(text: str) -> Any:
    from starlette.responses import JSONResponse

    return JSONResponse({"text": text})


def test_an_overloaded_server_is_asked_again(servers: tuple[Scripted, Scripted]) -> None:
    first, _ = servers
    first.says(error(503), error(429), good("at last"))
    ((text, done),) = ask(RemoteOptions(base_url=first.base_url, retry_delay=0.001))
    assert text == LlmText("at last") and done == LlmDone("stop")
    assert len(first.received) == 3


def test_a_failure_says_which_server_what_it_said_and_how_often_it_was_asked(
    servers: tuple[Scripted, Scripted],
) -> None:
    first, _ = servers
    first.says(*[error(503, "no room")] * 3)
    ((failed,),) = ask(RemoteOptions(base_url=first.base_url, retry_delay=0.001))
    assert isinstance(failed, Failed)
    assert failed.message.startswith("llm test: 127.0.0.1:") and "no room" in failed.message
    assert failed.message.endswith("(asked 3 times)")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_will_not_pass_is_not_asked_again(servers: tuple[Scripted, Scripted], status: int) -> None:
    first, _ = servers
    first.says(error(status))
    ((failed,),) = ask(RemoteOptions(base_url=first.base_url, retry_delay=0.001))
    assert isinstance(failed, Failed) and str(status) in failed.message
    assert len(first.received) == 1


def test_a_server_that_wants_a_long_delay_is_left(servers: tuple[Scripted, Scripted]) -> None:
    first, second = servers
    first.says(error(429, **{"retry-after": "3600"}))
    second.says(good("here"))
    ((text, _),) = ask(RemoteOptions(base_url=first.base_url, fallback=(second.base_url,)))
    assert text == LlmText("here") and len(first.received) == 1


def test_the_next_server_is_asked_for_its_own_model_and_stays_first_for_a_while(
    servers: tuple[Scripted, Scripted],
) -> None:
    first, second = servers
    first.says(error(500), error(500))
    second.says(good("one"), good("two"))
    options = RemoteOptions(
        base_url=first.base_url, fallback=(f"{second.base_url} model-b",), retries=1, retry_delay=0.001
    )
    (one, _), (two, _) = ask(options, times=2)
    assert (one, two) == (LlmText("one"), LlmText("two"))
    assert len(first.received) == 2
    assert [each.json["model"] for each in second.received] == ["model-b", "model-b"]


def test_a_server_that_cannot_be_reached_is_passed_over(servers: tuple[Scripted, Scripted]) -> None:
    _, second = servers
    second.says(good("here"))
    options = RemoteOptions(base_url="http://127.0.0.1:9/v1", fallback=(second.base_url,), retries=0)
    ((text, _),) = ask(options)
    assert text == LlmText("here")
    ((failed,),) = ask(RemoteOptions(base_url="http://127.0.0.1:9/v1", retries=0))
    assert "127.0.0.1:9: not reached" in failed.message


def test_a_delay_grows_to_the_longest_and_the_server_is_asked_as_often_as_said(
    servers: tuple[Scripted, Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = servers
    monkeypatch.setattr("actors.remote.LONGEST_DELAY_S", 0.004)
    first.says(*[error(503)] * 6)
    ((failed,),) = ask(RemoteOptions(base_url=first.base_url, retry_delay=0.001, retries=5))
    assert failed.message.endswith("(asked 6 times)")


def test_an_answer_that_is_no_json_fails_alone(servers: tuple[Scripted, Scripted]) -> None:
    from starlette.responses import Response

    first, _ = servers
    first.says(Response("{oops", media_type="application/json"), good("better"))
    ((text, _),) = ask(RemoteOptions(base_url=first.base_url, retry_delay=0.001))
    assert text == LlmText("better")


def test_a_connection_that_does_not_come_is_told_from_silence() -> None:
    remote = Remote("llm test", RemoteOptions(base_url="http://a.example/v1", connect_timeout=3.0), "m")
    request = remote._http.Request("POST", "http://a.example/v1/ask")
    error = remote._openai.APITimeoutError(request=request)
    error.__cause__ = remote._http.ConnectTimeout("")
    assert remote._judged(error, 0)[0] == "no connection within 3 s"
    error.__cause__ = remote._http.ReadTimeout("")
    assert remote._judged(error, 0)[0] == "gave no sign for 30 s"
    remote.close()


def test_a_silent_server_is_left_for_the_next_one(servers: tuple[Scripted, Scripted]) -> None:
    first, second = servers
    first.left.clear()
    first.says(SILENCE)
    second.says(good("here"))
    options = RemoteOptions(base_url=first.base_url, fallback=(second.base_url,), timeout=0.05)
    ((text, _),) = ask(options)
    assert text == LlmText("here")
    assert first.left.wait(10)


class Clock:
    """Scripted time."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


def silences(
    monkeypatch: pytest.MonkeyPatch, options: RemoteOptions, took_s: float, says: int = 0
) -> list[tuple[str | None, float]]:
    """Which model is asked and how long it may then be silent, s, where each asking brings `says` pieces, each after
    `took_s`, and breaks off after as long again."""
    clock = Clock()
    monkeypatch.setattr("actors.remote.time", clock)
    asked = []

    async def break_off(endpoint: Endpoint, delivered: list[Any]) -> AsyncGenerator[Any, None]:
        asked.append((endpoint.model, endpoint.client.timeout.read))
        for _ in range(says):
            clock.now += took_s
            yield LlmText("piece")
        clock.now += took_s
        raise BrokenOff("scripted")

    ask(options, ask=break_off)
    return asked


def test_a_server_is_left_when_all_its_silence_together_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    options = RemoteOptions(
        timeout=30.0, retry_delay=0.0, fallback=("http://b/v1 b",), base_url="http://a/v1"
    )
    asked = silences(monkeypatch, options, 20.0)
    assert asked == [("model-a", 30.0), ("model-a", 10.0), ("b", 30.0), ("b", 10.0)]


def test_a_server_that_goes_on_may_be_silent_as_long_again(monkeypatch: pytest.MonkeyPatch) -> None:
    options = RemoteOptions(timeout=30.0, retry_delay=0.0, base_url="http://a/v1", retries=2)
    asked = silences(monkeypatch, options, 20.0, says=2)
    assert asked == [("model-a", 30.0), ("model-a", 10.0), ("model-a", 10.0)]


def test_a_delay_that_a_server_asks_for_is_part_of_its_silence(servers: tuple[Scripted, Scripted]) -> None:
    first, second = servers
    first.says(error(429, **{"retry-after": "7"}))
    second.says(good("here"))
    options = RemoteOptions(base_url=first.base_url, fallback=(second.base_url,), timeout=5.0)
    ((text, _),) = ask(options)
    assert text == LlmText("here") and len(first.received) == 1


def test_an_answer_that_breaks_off_goes_on_behind_what_came(servers: tuple[Scripted, Scripted]) -> None:
    first, _ = servers
    first.says(good("unused"), good("unused"))
    seen = []

    async def half(endpoint: Endpoint, delivered: list[Any]) -> AsyncGenerator[Any, None]:
        seen.append([each.text for each in delivered])
        async for result in post(endpoint, delivered):
            yield LlmText("half") if len(seen) == 1 else result
            if len(seen) == 1:
                return

    ((*texts, _),) = ask(RemoteOptions(base_url=first.base_url, retry_delay=0.001), ask=half)
    assert seen == [[], ["half"]]
    assert texts == [LlmText("half"), LlmText("unused")]


def test_no_error_shows_a_key(servers: tuple[Scripted, Scripted]) -> None:
    first, _ = servers
    first.says(error(401, f"the key {KEY} is not known"))
    options = RemoteOptions(base_url=first.base_url, api_key=KEY)
    ((failed,),) = ask(options)
    assert KEY not in failed.message and "(key)" in failed.message
    assert first.received[0].key == KEY
    assert KEY not in repr(options)


def keys(options: RemoteOptions) -> list[str | None]:
    return [key for _, _, key in _servers(options, "m")]


def test_a_key_comes_from_the_option_else_the_file_else_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "keys"
    file.write_text("of-file\nof-second\n")
    assert keys(RemoteOptions()) == [None]
    monkeypatch.setitem(os.environ, "OPENAI_API_KEY", "of-environment")
    assert keys(RemoteOptions()) == ["of-environment"]
    assert keys(RemoteOptions(api_key_file=str(file))) == ["of-file"]
    assert keys(RemoteOptions(api_key="of-option", api_key_file=str(file))) == ["of-option"]
    with pytest.raises(ValueError, match="api_key_file"):
        keys(RemoteOptions(api_key_file=str(tmp_path / "absent")))


def test_a_key_is_sent_without_its_line_break_and_one_that_cannot_be_sent_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(os.environ, "OPENAI_API_KEY", f"{KEY}\n")
    assert keys(RemoteOptions()) == [KEY]
    for bad in (f"{KEY}\n{KEY}", f"\u201c{KEY}\u201d"):
        with pytest.raises(ValueError, match="an API key holds") as raised:
            keys(RemoteOptions(api_key=bad))
        assert KEY not in str(raised.value)


def test_another_model_of_openai_gets_openais_key(monkeypatch: pytest.MonkeyPatch) -> None:
    options = RemoteOptions(
        api_key="a",
        fallback=("https://api.openai.com/v1 small", "http://api.openai.com/v1", "https://b.example"),
    )
    assert keys(options) == ["a", "a", None, None], "nor does a key go unencrypted where it went encrypted"
    monkeypatch.setitem(os.environ, "OPENAI_BASE_URL", "https://b.example/v1")
    assert keys(options) == ["a", None, None, "a"]
    monkeypatch.setitem(os.environ, "OPENAI_BASE_URL", "")
    assert [address for address, _, _ in _servers(RemoteOptions(), "m")] == ["https://api.openai.com/v1"]


def test_a_key_goes_to_no_other_host_than_it_was_given_for(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("a\nb\n")
    options = RemoteOptions(
        base_url="https://a.example/v1",
        api_key_file=str(file),
        fallback=("https://b.example/v1", "https://c.example/v1 m2", "https://a.example/v1 m3"),
    )
    assert keys(options) == ["a", "b", None, "a"]


def test_warm_up_waits_for_a_server_that_starts_and_gives_up_at_once_where_it_never_will(
    servers: tuple[Scripted, Scripted],
) -> None:
    first, _ = servers
    options = RemoteOptions(base_url=first.base_url, retries=0, retry_delay=0.001)
    remote = Remote("llm test", options, "m")

    async def answer(request: Any) -> AsyncGenerator[Any, None]:
        async for result in remote.ask(post):
            yield result

    first.says(error(503), error(503), good("up"))
    remote.warm_up(answer, None)
    assert len(first.received) == 3
    remote.close()

    remote = Remote("llm test", RemoteOptions(base_url=first.base_url, retries=0, timeout=0.05), "m")
    first.says(SILENCE, good("up"))
    remote.warm_up(answer, None)
    first.says(error(401, "who are you"))
    with pytest.raises(RuntimeError, match=r"warm-up failed: llm test: .*who are you"):
        remote.warm_up(answer, None)
    remote.close()
