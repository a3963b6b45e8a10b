"""STT behind OpenAI's transcriptions: OpenAI, vLLM, speaches, this project's own server and others."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

from actors import languages
from actors.backend import Batch, Capabilities, Key
from actors.messages import STT_RATE_HZ, Failed, SttRequest, SttResult, Word
from actors.remote import BrokenOff, Endpoint, Remote, RemoteOptions
from actors.wav import wav

INT16_SCALE = 32_768.0


@dataclass(frozen=True)
class OpenaiSttOptions(RemoteOptions):
    """Options of `OpenaiStt`."""

    base_url: str | None = "http://localhost:8000/v1"
    """Address of the server, with its /v1; `https://api.openai.com/v1` is OpenAI's."""
    model: str = "nvidia/parakeet-tdt-0.6b-v3"
    """The model, as the server names it."""
    language: str = "auto"
    """ISO 639-1 code, or auto: the server finds out.  A request's own language goes first."""
    response_format: Literal["json", "text", "verbose_json"] = "json"
    """verbose_json also brings the language and word times, where the server offers it.  Word times are asked for in
    that form whatever is set."""
    timeout: float = 60.0
    """Longest silence of the server, s, over all the times that it is asked; then the next one is asked."""


class OpenaiStt:
    """`POST /v1/audio/transcriptions`, several at once."""

    def __init__(self, options: OpenaiSttOptions | None = None) -> None:
        self._options = options or OpenaiSttOptions()
        self._remote: Remote

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(continuous=True, max_batch=self._options.max_concurrency)

    def load(self, device: str, dtype: str, threads: int) -> None:
        """Nothing is loaded here: device, dtype and threads do not matter."""
        self._remote = Remote("stt openai", self._options, self._options.model)

    def warmup(self) -> None:
        """Send half a second of a tone.  Raises `RuntimeError` where no server takes it."""
        import numpy as np

        tone = (3_000 * np.sin(np.arange(STT_RATE_HZ // 2) / 10)).astype("<i2").tobytes()
        self._remote.warm_up(self._answer, SttRequest(tone))

    def memory_bytes(self, dtype: str) -> int:
        return 0

    def transcribe(self, batch: Batch[SttRequest]) -> Iterator[tuple[Key, SttResult | Failed]]:
        """Yield the transcript of each utterance; the upload of a cancelled one is broken off."""
        yield from self._remote.answer_all(batch, self._answer)

    def close(self) -> None:
        """Close the connections."""
        self._remote.close()

    async def _answer(self, request: SttRequest) -> AsyncGenerator[SttResult | Failed, None]:
        import numpy as np

        from actors.stt import windows

        if len(request.audio) % 2:
            yield Failed(f"stt openai: {len(request.audio)} bytes of audio; expected int16 samples.")
            return
        if windows.silent(np.frombuffer(request.audio, "<i2").astype(np.float32) / INT16_SCALE):
            yield SttResult("", language=request.language, rejected="no_speech")
            return

        async def ask(endpoint: Endpoint, delivered: list[Any]) -> AsyncGenerator[SttResult, None]:
            reply = await endpoint.client.audio.transcriptions.create(**self._body(request, endpoint))
            if isinstance(reply, str) and not self._takes_text(request):
                raise BrokenOff(f"text came instead of JSON: {reply[:60]!r}")
            yield self._result(request, reply)

        async with aclosing(self._remote.ask(ask)) as results:
            async for result in results:
                yield result

    def _language(self, request: SttRequest) -> str | None:
        asked = request.language or (None if self._options.language == "auto" else self._options.language)
        return languages.code(asked) if asked else None

    def _takes_text(self, request: SttRequest) -> bool:
        return self._options.response_format == "text" and not request.word_times

    def _body(self, request: SttRequest, endpoint: Endpoint) -> dict[str, Any]:
        style = "verbose_json" if request.word_times else self._options.response_format
        body: dict[str, Any] = {
            "file": ("speech.wav", wav(request.audio, STT_RATE_HZ), "audio/wav"),
            "model": endpoint.model,
            "response_format": style,
        }
        if language := self._language(request):
            body["language"] = language
        if request.prompt:
            body["prompt"] = request.prompt
        if request.word_times:
            body["timestamp_granularities"] = ["word"]
        return body

    def _result(self, request: SttRequest, reply: Any) -> SttResult:
        from actors.stt import gates

        text = (reply if isinstance(reply, str) else reply.text or "").strip()
        rejected = gates.rejection(text, 0.0, 0.0)
        found = getattr(reply, "language", None)
        words = [
            Word(word.word.strip(), round(word.start * 1000), round(word.end * 1000))
            for word in getattr(reply, "words", None) or ()
        ]
        return SttResult(
            text="" if rejected else text,
            language=languages.code(found) if found else self._language(request),
            words=words if request.word_times else None,
            rejected=rejected,
        )
