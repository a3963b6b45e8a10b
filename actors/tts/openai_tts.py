"""TTS behind OpenAI's speech: OpenAI, vLLM-Omni, Kokoro-FastAPI, this project's own server and others."""

from __future__ import annotations

import struct
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

from actors.backend import Batch, Capabilities, Key
from actors.messages import Failed, TtsAudio, TtsDone, TtsRequest
from actors.remote import BrokenOff, Endpoint, Remote, RemoteOptions

PIECE_BYTES = 9_600
"""Sound is passed on in pieces of this size: 0.2 s at 24 kHz."""
AUTO = "auto"
STREAMED = 0x7FFF_0000
"""A wav whose length was not known when it was begun states one from here on, or 0."""


@dataclass(frozen=True)
class OpenaiTtsOptions(RemoteOptions):
    """Options of `OpenaiTts`."""

    base_url: str | None = "http://localhost:8091/v1"
    """Address of the server, with its /v1; `https://api.openai.com/v1` is OpenAI's."""
    model: str = "Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice"
    """The model, as the server names it."""
    voice: str = "aiden"
    """Voice of requests that name none."""
    language: str | None = None
    """Sent as `language` to servers that know the field; auto: that of each clause, where it is known."""
    task_type: str | None = None
    """vLLM-Omni's: CustomVoice, VoiceDesign or Base."""
    instructions: str | None = None
    """How to speak, in words, for servers that take them."""
    response_format: Literal["pcm", "wav"] = "pcm"
    """pcm is raw int16 at `sample_rate`; wav says its rate itself."""
    sample_rate: int = 24_000
    """Rate of pcm, Hz."""
    speed: float = 1.0
    """Times the request's own speed."""
    stream: bool = False
    """Send vLLM-Omni's `stream: true`.  Sound is passed on as it comes in any case."""
    timeout: float = 60.0
    """Longest silence of the server, s, over all the times that it is asked; then the next one is asked."""


class OpenaiTts:
    """`POST /v1/audio/speech`, several at once."""

    def __init__(self, options: OpenaiTtsOptions | None = None) -> None:
        self._options = options or OpenaiTtsOptions()
        self._remote: Remote

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            streams=True,
            continuous=True,
            max_batch=self._options.max_concurrency,
            resume="clause",
            rate_hz=self._options.sample_rate,
        )

    def load(self, device: str, dtype: str, threads: int) -> None:
        """Nothing is loaded here: device, dtype and threads do not matter."""
        self._remote = Remote("tts openai", self._options, self._options.model)

    def warmup(self) -> None:
        """Have a word spoken.  Raises `RuntimeError` where no server does."""
        self._remote.warm_up(self._answer, TtsRequest("Hello."))

    def memory_bytes(self, dtype: str) -> int:
        return 0

    def synthesize(self, batch: Batch[TtsRequest]) -> Iterator[tuple[Key, TtsAudio | TtsDone | Failed]]:
        """Yield each clause's sound as it comes; a cancelled one's connection is closed at once."""
        yield from self._remote.answer_all(batch, self._answer)

    def close(self) -> None:
        """Close the connections."""
        self._remote.close()

    async def _answer(self, request: TtsRequest) -> AsyncGenerator[TtsAudio | TtsDone | Failed, None]:
        async def ask(endpoint: Endpoint, delivered: list[Any]) -> AsyncGenerator[TtsAudio | TtsDone, None]:
            rest = request.resumed(delivered)
            sound = _Sound(
                self._options.sample_rate, rest.skip_samples, self._options.response_format == "wav"
            )
            create = endpoint.client.audio.speech.with_streaming_response.create
            async with create(**self._body(rest, endpoint)) as reply:
                kind = reply.headers.get("content-type", "")
                if kind.startswith(("application/json", "text/html")):
                    raise BrokenOff(f"{kind} came instead of sound")
                async for data in reply.iter_bytes(PIECE_BYTES):
                    if pcm := sound.feed(data):
                        yield TtsAudio(pcm, sound.rate_hz)
            if not sound.samples:
                raise BrokenOff("no sound came")
            yield TtsDone(sound.samples)

        async with aclosing(self._remote.ask(ask)) as results:
            async for result in results:
                yield result

    def _body(self, request: TtsRequest, endpoint: Endpoint) -> dict[str, Any]:
        options = self._options
        language = options.language
        if language is not None and language.lower() == AUTO:
            language = request.language
        extra = {"language": language, "task_type": options.task_type, "stream": options.stream or None}
        body: dict[str, Any] = {
            "input": request.text,
            "model": endpoint.model,
            "voice": request.voice or options.voice,
            "response_format": options.response_format,
            "speed": options.speed * request.speed,
            "extra_body": {name: value for name, value in extra.items() if value is not None},
        }
        if options.instructions is not None:
            body["instructions"] = options.instructions
        return body


class _Sound:
    """int16 samples out of bytes that were cut anywhere."""

    def __init__(self, rate_hz: int, skip_samples: int, is_wav: bool) -> None:
        self.rate_hz = rate_hz
        self.samples = 0
        """All that came, skipped ones included."""
        self._skip = skip_samples
        self._in_header = is_wav
        self._left = sys.maxsize
        """Bytes of sound that are still to come, at most: in a file, something else may follow."""
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """The whole samples of `data` that are not skipped.  Raises `BrokenOff` for a wav that is no mono int16, and
        for one that was not asked for."""
        self._rest += data
        if self._in_header and not self._read_header():
            return b""
        if not self.samples and self._rest.startswith(b"RIFF"):
            raise BrokenOff("pcm was asked for, but a wav came; set response_format to wav")
        whole = min(len(self._rest), self._left) // 2 * 2
        self._left -= whole
        pcm, self._rest = self._rest[:whole], self._rest[whole:]
        self.samples += whole // 2
        skipped = min(self._skip, whole // 2)
        self._skip -= skipped
        return pcm[skipped * 2 :]

    def _read_header(self) -> bool:
        """Whether all of the header has come; it is cut off then."""
        head, at = self._rest, 12
        if len(head) >= 12 and (head[:4], head[8:12]) != (b"RIFF", b"WAVE"):
            raise BrokenOff(f"wav was asked for, but what came begins with {head[:4]!r}")
        while len(head) >= at + 8:
            name, size = struct.unpack_from("<4sI", head, at)
            if name == b"data":
                self._rest, self._in_header = head[at + 8 :], False
                self._left = size if 0 < size < STREAMED else sys.maxsize
                return True
            if name == b"fmt " and len(head) >= at + 24:
                kind, channels, self.rate_hz, _, _, bits = struct.unpack_from("<HHIIHH", head, at + 8)
                if channels != 1 or bits != 16 or kind not in (1, 0xFFFE):
                    raise BrokenOff(f"wav of {channels} channels with {bits} bits came; expected mono int16")
            at += 8 + size + size % 2
        return False
