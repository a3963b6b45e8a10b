"""`session.update`: what changes, what is echoed, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.session import events as ev
from orchestration.session.config import Pcmu, SemanticVad, ServerVad, SessionDefaults, Transcription
from tests.orchestration.session.session_rig import Rig


def effective(rig: Rig) -> Any:
    return rig.session.settings.session


def test_the_first_event_is_the_whole_session_with_openais_defaults() -> None:
    rig = Rig()
    (created,) = rig.events
    session = created.session
    assert (session.id, session.object) == ("sess_test", "realtime.session")
    assert session.audio.input.turn_detection == ServerVad(0.5, 300, 500, None, True, True)
    assert (session.audio.input.format.rate, session.audio.output.format.rate) == (24000, 24000)
    assert session.audio.input.transcription is None
    assert (session.output_modalities, session.max_output_tokens) == (["audio"], "inf")


def test_only_what_is_given_changes_and_all_is_echoed() -> None:
    rig = Rig()
    (updated,) = rig.update(
        audio={"input": {"turn_detection": {"type": "server_vad", "silence_duration_ms": 700}}}
    )
    assert updated.session.audio.input.turn_detection == ServerVad(silence_duration_ms=700)
    (updated,) = rig.update(audio={"input": {"turn_detection": {"threshold": 0.7}}}, instructions="Be brief.")
    assert updated.session.audio.input.turn_detection == ServerVad(0.7, silence_duration_ms=700)
    assert updated.session.instructions == "Be brief."
    (updated,) = rig.update(audio={"input": {"turn_detection": {"type": "semantic_vad"}}})
    assert updated.session.audio.input.turn_detection == SemanticVad()
    (updated,) = rig.update(audio={"input": {"turn_detection": None, "format": {"type": "audio/pcmu"}}})
    assert updated.session.audio.input.turn_detection is None
    assert updated.session.audio.input.format == Pcmu()
    assert updated.session.instructions == "Be brief."


def test_empty_clears_and_null_means_the_default() -> None:
    rig = Rig()
    tool = {"type": "function", "name": "clock", "parameters": {"type": "object", "default": None}}
    rig.update(tools=[tool], instructions="Be brief.", max_output_tokens=7)
    assert effective(rig).tools[0].parameters == {"type": "object", "default": None}
    rig.update(tools=[], instructions="")
    assert (effective(rig).tools, effective(rig).instructions) == ([], "")
    rig.update(instructions=None, max_output_tokens=None, audio={"output": {"voice": None}})
    assert effective(rig).instructions == SessionDefaults().instructions
    assert (effective(rig).max_output_tokens, effective(rig).audio.output.voice) == ("inf", "default")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"id": "sess_other"}, "session.id"),
    (
        {"audio": {"input": {"turn_detection": {"threshold": 2.0}}}},
        "session.audio.input.turn_detection.threshold",
    ),
    (
        {"audio": {"input": {"turn_detection": {"prefix_padding_ms": -1}}}},
        "session.audio.input.turn_detection.prefix_padding_ms",
    ),
    (
        {"audio": {"input": {"turn_detection": {"silence_duration_ms": 99_999}}}},
        "session.audio.input.turn_detection.silence_duration_ms",
    ),
    (
        {"audio": {"input": {"turn_detection": {"idle_timeout_ms": 1}}}},
        "session.audio.input.turn_detection.idle_timeout_ms",
    ),
    (
        {"audio": {"input": {"format": {"type": "audio/pcm", "rate": 16000}}}},
        "session.audio.input.format.rate",
    ),
    (
        {"audio": {"output": {"format": {"type": "audio/pcm", "rate": 16000}}}},
        "session.audio.output.format.rate",
    ),
    ({"audio": {"output": {"speed": 9}}}, "session.audio.output.speed"),
    ({"output_modalities": ["text", "audio"]}, "session.output_modalities"),
    ({"max_output_tokens": 0}, "session.max_output_tokens"),
    ({"tools": [{"type": "function", "name": "two words"}]}, "session.tools[0].name"),
    (
        {"tools": [{"type": "function", "name": "a"}, {"type": "function", "name": "a"}]},
        "session.tools[1].name",
    ),
    ({"tool_choice": {"type": "function", "name": "clock"}}, "session.tool_choice"),
    ({"instructions": 7}, "session.instructions"),
    ({"audio": 7}, "session.audio"),
    ({"audio": {"input": {"format": {"type": "audio/mp3"}}}}, "session.audio.input.format.type"),
]


@pytest.mark.parametrize(("patch", "param"), REFUSED, ids=[param for _, param in REFUSED])
def test_what_cannot_hold_is_refused_and_nothing_changes(patch: dict[str, Any], param: str) -> None:
    rig = Rig()
    before = effective(rig)
    (error,) = rig.update(**patch, include=["item.input_audio_transcription.logprobs"])
    assert (error.error.code, error.error.param) == ("invalid_value", param)
    assert effective(rig) is before


def test_a_server_may_allow_16_khz() -> None:
    rig = Rig(SessionDefaults(allow_16k=True))
    rig.update(audio={"input": {"format": {"type": "audio/pcm", "rate": 16000}}})
    assert effective(rig).audio.input.format.rate == 16000


def test_the_voice_is_fixed_once_the_session_has_spoken() -> None:
    rig = Rig(SessionDefaults(voices={"marin": "af_heart"}))
    rig.update(audio={"output": {"voice": "marin"}})
    rig.create()
    assert [s.request.voice for s in rig.requests if s.request.stage == "tts"] == ["af_heart"] * 2
    rig.update(audio={"output": {"voice": "cedar"}})
    assert rig.errors() == ["cannot_update_voice"]
    rig.update(audio={"output": {"voice": "marin"}})
    rig.update(type="transcription")
    assert rig.errors() == ["cannot_update_voice", "invalid_value"]


def test_a_response_may_have_a_voice_and_a_format_of_its_own() -> None:
    rig = Rig()
    output = ev.ResponseOutputParams(Pcmu(), "onyx")
    rig.create(audio=ev.ResponseAudioParams(output))
    assert rig.done().audio.output == ev.ResponseAudioOutput(Pcmu(), "onyx")


@pytest.mark.parametrize(
    "params",
    [
        {"output_modalities": ["text", "audio"]},
        {"max_output_tokens": 9999},
        {"conversation": "conv_other"},
        {"max_output_tokens": 0},
        {"output_modalities": []},
    ],
)
def test_overrides_that_cannot_hold_are_refused(params: dict[str, Any]) -> None:
    rig = Rig()
    assert rig.types(rig.create(**params)) == ["error"]


def test_a_response_with_tools_of_its_own_forgets_the_sessions_choice() -> None:
    rig = Rig()
    tools = [{"type": "function", "name": name} for name in ("clock", "map")]
    rig.update(tools=tools, tool_choice={"type": "function", "name": "clock"})
    from orchestration.session.config import FunctionChoice, Tool

    rig.create(tools=[Tool("map")])
    rig.create(tools=[Tool("map")], tool_choice=FunctionChoice("map"))
    assert [prompt.tool_choice for prompt in rig.prompts()] == ["auto", "function:map"]
    rig.create(tools=[Tool("map")], tool_choice=FunctionChoice("clock"))
    assert rig.errors() == ["invalid_value"]


def test_what_the_client_asked_at_connect_holds_from_the_first_event() -> None:
    rig = Rig(SessionDefaults(session={"model": "gpt-realtime", "audio": {"output": {"voice": "cedar"}}}))
    (created,) = rig.events
    assert (created.session.model, created.session.audio.output.voice) == ("gpt-realtime", "cedar")


def test_what_cannot_hold_at_connect_is_an_error_after_the_first_event() -> None:
    rig = Rig(SessionDefaults(session={"output_modalities": ["smell"]}))
    assert rig.types() == ["session.created", "error"]


def test_transcription_by_a_server_option_and_its_language_and_prompt() -> None:
    rig = Rig(
        SessionDefaults(
            transcription=Transcription("whisper-1", language="de", prompt="Namen"), language="en"
        )
    )
    rig.hear(1000)
    rig.quiet(700)
    (stt,) = [submit.request for submit in rig.requests if submit.request.stage == "stt"]
    assert (stt.language, stt.prompt) == ("de", "Namen")
    assert rig.of(ev.InputAudioTranscriptionCompleted)


def test_a_transcription_session_transcribes_and_never_answers() -> None:
    rig = Rig(SessionDefaults(session={"type": "transcription"}, speculation="tts", expires_at=4_000_000_000))
    (created,) = rig.events
    assert (created.session.object, created.session.expires_at) == (
        "realtime.transcription_session",
        4_000_000_000,
    )
    rig.hear(1000)
    rig.quiet(700)
    assert rig.types()[-1] == "conversation.item.input_audio_transcription.completed"
    rig.create()
    assert rig.errors() == ["invalid_request"] and not rig.prompts()
