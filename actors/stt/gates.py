"""Is a transcript what somebody said, or what Whisper writes over silence and noise?"""

from __future__ import annotations

import re
import zlib

NO_SPEECH_PROBABILITY = 0.6
"""tiny.en gives 0.90-0.97 to noise, hum and clicks, and at most 0.18 to speech."""
DOUBTFUL_NO_SPEECH_PROBABILITY = 0.3
LOW_LOGPROB = -0.8
LOWEST_LOGPROB = -2.0
DOUBTFUL_LOGPROB = -0.6
MAX_COMPRESSION = 2.4
"""Text that zlib shrinks further than this says the same thing again and again (figure of the Whisper paper, 4.5)."""

PHANTOMS = re.compile(
    r"thank(s| you)( (so|very) much)?( (all|everyone))?( for (watching|listening|viewing)( this video)?)?"
    r"|(please )?(like and )?subscribe( to (my|our|the) channel)?"
    r"|(i will |i'll |we'll )?see you( all)?( again)?( in the)?( next (time|video|one))?"
    r"|(subtitles|captions|subtitled|captioned|transcription|transcribed|translated)( (done|made|provided))? by .*"
    r"|.*amara ?org.*|you|bye( bye)?|okay|so|oh|the|i|foreign|music|applause|silence|blank audio",
)
"""What Whisper writes where nobody speaks: phrases that ended the videos it was trained on."""

_BRACKETED = re.compile(r"[\[(*♪][^\])*♪]*[\])*♪]")
_NOT_WORDS = re.compile(r"[^\w']+")


def rejection(text: str, logprob: float, no_speech: float, looped: bool = False) -> str | None:
    """Why `text` is no transcript of speech, or None.

    `logprob` is the mean token log probability, `no_speech` the probability of the no-speech token, `looped` whether
    the decoder was stopped because it went round in circles.  Reasons: "no_speech", "repetition", "phantom",
    "low_confidence".  A phantom phrase that the model is sure of passes: people do say thank you.
    """
    words = plain(text)
    if not words:
        return "no_speech"
    if looped or compression(text) > MAX_COMPRESSION:
        return "repetition"
    if no_speech > NO_SPEECH_PROBABILITY and logprob < LOW_LOGPROB:
        return "no_speech"
    doubtful = no_speech > DOUBTFUL_NO_SPEECH_PROBABILITY or logprob < DOUBTFUL_LOGPROB
    if doubtful and PHANTOMS.fullmatch(words):
        return "phantom"
    if logprob < LOWEST_LOGPROB:
        return "low_confidence"
    return None


def plain(text: str) -> str:
    """`text` in lower case without punctuation and without what stands in brackets, such as [Music]."""
    return " ".join(_NOT_WORDS.sub(" ", _BRACKETED.sub(" ", text).lower()).split())


def compression(text: str) -> float:
    """How many times smaller zlib makes `text`, a byte a character in any script: in UTF-8 the first bytes of, say,
    each Hindi letter are the same, and plain speech would seem to repeat itself."""
    data = bytes(ord(character) & 0xFF for character in text)
    return len(data) / len(zlib.compress(data)) if data else 0.0
