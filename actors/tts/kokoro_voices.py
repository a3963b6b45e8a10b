"""Kokoro's English voices, and the names that OpenAI clients ask for."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

AMERICAN = [
    "af_alloy",
    "af_aoede",
    "af_bella",
    "af_heart",
    "af_jessica",
    "af_kore",
    "af_nicole",
    "af_nova",
    "af_river",
    "af_sarah",
    "af_sky",
    "am_adam",
    "am_echo",
    "am_eric",
    "am_fenrir",
    "am_liam",
    "am_michael",
    "am_onyx",
    "am_puck",
    "am_santa",
]
BRITISH = ["bf_alice", "bf_emma", "bf_isabella", "bf_lily", "bm_daniel", "bm_fable", "bm_george", "bm_lewis"]
VOICES = (*AMERICAN, *BRITISH)

OPENAI_NAMES: Mapping[str, str] = {
    "alloy": "af_alloy",
    "ash": "am_michael",
    "ballad": "bm_george",
    "cedar": "am_fenrir",
    "coral": "af_bella",
    "echo": "am_echo",
    "fable": "bm_fable",
    "marin": "af_heart",
    "nova": "af_nova",
    "onyx": "am_onyx",
    "sage": "af_sarah",
    "shimmer": "af_sky",
    "verse": "am_puck",
}


class UnknownVoice(ValueError):
    """No voice of that name."""


def find_voice(name: str, aliases: Mapping[str, str]) -> str:
    """The voice that `name` (a voice or an alias, any case) means; raises `UnknownVoice` with what comes near."""
    wanted = name.strip().lower()
    wanted = aliases.get(wanted, wanted)
    if wanted in VOICES:
        return wanted
    known = {*VOICES, *aliases}
    near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.5)
    near += [voice for voice in VOICES if voice.partition("_")[2] == wanted and voice not in near]
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise UnknownVoice(f"voice {name!r} is not known.{hint} English voices: {', '.join(VOICES)}.")


def accent(voice: str) -> str:
    """The lexicon that a voice speaks: "us" or "gb"."""
    return "gb" if voice.startswith("b") else "us"
