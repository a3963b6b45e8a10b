"""The reference's flags of the backends that are asked over HTTP, of faster-whisper, and `--stt none`."""

from __future__ import annotations

import pytest

from s2s.asks import asks
from s2s.config import Config, ConfigError
from s2s.config_view import options_text, tree_text
from s2s.gateway import gateway_options
from s2s.layers import load
from s2s.pull import needed


def config(text: str) -> Config:
    """`name value, name value`."""
    return load([(name, value) for name, _, value in (pair.partition(" ") for pair in text.split(", "))])


@pytest.mark.parametrize("llm", ["chat-completions", "responses-api"])
def test_both_llms_over_http_take_the_flags_of_the_responses_api(llm: str) -> None:
    made = config(
        f"llm_backend {llm}, llm_model_name m, responses_api_base_url http://a/v1, responses_api_api_key k, "
        "responses_api_stream false, responses_api_disable_thinking false, responses_api_warmup_timeout_s 3, "
        "responses_api_reasoning_effort low"
    )
    assert made.llm.options == {
        "model_name": "m",
        "base_url": "http://a/v1",
        "api_key": "k",
        "stream": False,
        "disable_thinking": False,
        "warmup_timeout_s": 3.0,
        "reasoning_effort": "low",
    }
    asks(made)


def test_the_backends_named_openai_are_told_apart_by_their_stage() -> None:
    made = config(
        "stt openai, tts openai, openai_stt_base_url http://a/v1, openai_stt_model a, openai_stt_response_format text, "
        "openai_tts_base_url http://b/v1, openai_tts_model b, openai_tts_voice nova, openai_tts_sample_rate 16000"
    )
    assert made.stt.options == {"base_url": "http://a/v1", "model": "a", "response_format": "text"}
    assert made.tts.options == {
        "base_url": "http://b/v1",
        "model": "b",
        "voice": "nova",
        "sample_rate": 16_000,
    }
    with pytest.raises(ConfigError, match="could mean --stt_timeout or --tts_timeout"):
        config("stt openai, tts openai, openai_timeout 5")


def test_faster_whisper_takes_its_own_flags() -> None:
    made = config(
        "stt faster-whisper, faster_whisper_stt_model_name small, faster_whisper_stt_compute_type int8, "
        "faster_whisper_stt_device cpu, faster_whisper_stt_gen_beam_size 4, faster_whisper_stt_gen_task translate"
    )
    assert made.stt.device == "cpu"
    assert made.stt.options == {
        "model_name": "small",
        "compute_type": "int8",
        "gen": {"beam_size": 4, "task": "translate"},
    }


def test_a_replica_is_not_taken_for_dead_while_its_servers_are_silent() -> None:
    made = config("stt openai, stt_timeout 40, stt_retries 0, stt_fallback http://b/v1, llm chat-completions")
    queues = gateway_options(made).queues
    assert queues["stt"].stage_timeout_s > 2 * 40
    assert (
        queues["llm"].stage_timeout_s
        >= gateway_options(config("llm llama-cpp")).queues["llm"].stage_timeout_s
    )
    assert "tts" not in queues


def test_fallbacks_are_a_list() -> None:
    made = config("llm chat-completions, llm_fallback http://b/v1 m2,http://c/v1")
    assert made.llm.options["fallback"] == ("http://b/v1 m2", "http://c/v1")


def test_a_key_is_not_shown_and_inherited_options_are_explained() -> None:
    made = config("llm chat-completions, llm_api_key sk-secret")
    assert "sk-secret" not in tree_text(made) and "(set)" in tree_text(made)
    assert "Longest silence of the server" in options_text(made)


def test_no_weights_are_fetched_for_a_server() -> None:
    made = config("stt openai, stt_model org/model, llm chat-completions, llm_model_name org/other")
    assert not {"org/model", "org/other"} & set(needed(made))


def test_an_llm_that_hears_can_do_without_stt() -> None:
    made = config("stt none, llm chat-completions, llm_audio_input true")
    assert made.stages == ("vad", "turn", "llm", "tts")
    assert [ask.stage for ask in asks(made)] == ["vad", "turn", "llm", "tts"]


@pytest.mark.parametrize("llm", ["llama-cpp", "chat-completions"])
def test_without_stt_an_llm_that_does_not_hear_is_an_error(llm: str) -> None:
    with pytest.raises(ConfigError, match=rf"flag --stt: --stt none .* --llm {llm} .* does not hear"):
        asks(config(f"stt none, llm {llm}"))


def test_only_stt_can_be_left_out_by_name() -> None:
    with pytest.raises(ConfigError, match="llm backend 'none' is not known"):
        config("llm none")
    with pytest.raises(ConfigError, match=r"'stt_model_name' is not a setting \(stt backend none\)"):
        config("stt none, stt_model_name x")
