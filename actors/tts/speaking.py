"""What TTS backends share that speak one clause after the other: voices, languages, seeds, cancelling, and the shape
and pieces of the sound."""

from __future__ import annotations

import difflib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from actors import languages, torch_device
from actors.backend import Capabilities
from actors.batch import Batch, Key, warm_up
from actors.messages import Failed, TtsAudio, TtsDone, TtsRequest
from actors.pretrained import Stopped
from actors.tts.kokoro_voices import OPENAI_NAMES, UnknownVoice
from actors.tts.sound_stream import SoundStream, pause_ms

Stop = Callable[[], bool]
Sound = Iterator[npt.NDArray[np.float32]]


class Unspeakable(ValueError):
    """A clause that the backend cannot speak, in words."""


class Speaker(ABC):
    """A TTS backend; a subclass loads a model and speaks clauses.  Its options must have `voice` where there are
    voices, and may have `language` and `blocksize`."""

    name: ClassVar[str]
    devices: ClassVar[tuple[str, ...]] = ("cuda", "mps", "cpu")
    streams: ClassVar[bool] = False
    resume: ClassVar[Literal["exact", "clause"]] = "exact"
    """exact: the same text and seed give the same samples on machines of a kind."""
    rate_hz: int

    def __init__(self, options: Any) -> None:
        self._options = options
        self._device = "cpu"

    @property
    def voices(self) -> tuple[str, ...]:
        """Names of voices; none: there is nothing to choose, and a voice asked for does not matter."""
        return ()

    @property
    def languages(self) -> tuple[str, ...] | None:
        """ISO 639-1 codes; None: any that the model knows."""
        return None

    @property
    def sample_text(self) -> str:
        """What is spoken at warm-up."""
        return "Sure, I can help you with that."

    @abstractmethod
    def speak(self, request: TtsRequest, voice: str | None, language: str | None, stopped: Stop) -> Sound:
        """Yield float samples, -1..1, at `rate_hz`, as they come.

        `voice` is one of `voices` (None: there are none), `language` an ISO 639-1 code that the backend has (None: not
        told).  `stopped` is to be asked between steps; raise `Stopped` or just return where it holds.  Raises
        `Unspeakable`."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            devices=self.devices,
            languages=self.languages,
            streams=self.streams,
            resume=self.resume,
            rate_hz=getattr(self, "rate_hz", None),
            voices=self.voices,
        )

    def warmup(self) -> None:
        """Speak one short sentence."""
        warm_up(self.synthesize, TtsRequest(self.sample_text))

    def synthesize(self, batch: Batch[TtsRequest]) -> Iterator[tuple[Key, TtsAudio | TtsDone | Failed]]:
        """Yield each clause's sound in pieces, then its length.  A cancelled one stops at the model's next step."""
        while taken := batch.take(1):
            key, request = taken[0]

            def stopped(key: Key = key) -> bool:
                return batch.cancelled(key)

            try:
                for result in self._clause(request, stopped):
                    if stopped():
                        break
                    yield key, result
            except Stopped:
                continue
            except (UnknownVoice, Unspeakable) as error:
                yield key, Failed(f"tts {self.name}: {error}")
            finally:
                torch_device.release(self._device)

    def _clause(self, request: TtsRequest, stopped: Stop) -> Iterator[TtsAudio | TtsDone]:
        voice, language = self.find_voice(request.voice), self._language(request.language)
        if not any(character.isalnum() for character in request.text):
            yield TtsDone(0)
            return
        _seed(request.seed)
        sound = SoundStream(self.rate_hz, request.skip_samples, getattr(self._options, "blocksize", 0))
        for samples in self.speak(request, voice, language, stopped):
            yield from sound.feed(samples)
            if stopped():
                return
        if stopped():
            return
        yield from sound.finish(pause_ms(request.text))
        yield TtsDone(sound.samples)

    def find_voice(self, asked: str | None) -> str | None:
        """The voice that `asked` means, in any case; one of OpenAI's names means the default voice.  Raises
        `UnknownVoice`."""
        if not self.voices:
            return None
        default = str(self._options.voice)
        wanted = (asked or default).strip()
        known = {voice.lower(): voice for voice in self.voices}
        if wanted.lower() in known:
            return known[wanted.lower()]
        if wanted.lower() in OPENAI_NAMES and wanted != default:
            return self.find_voice(default)
        near = difflib.get_close_matches(wanted.lower(), known, n=1)
        hint = f" Did you mean {known[near[0]]}?" if near else ""
        raise UnknownVoice(f"voice {wanted!r} is not known.{hint} Voices: {', '.join(self.voices)}.")

    def _default_language(self) -> str | None:
        """The language of clauses that name none."""
        return getattr(self._options, "language", None)

    def _language(self, asked: str | None) -> str | None:
        wanted = asked or self._default_language()
        if wanted is None or wanted == "auto":
            return None
        code = languages.code(wanted)
        known = self.languages
        if known is not None and code not in known:
            raise Unspeakable(
                f"language {wanted!r} was asked for, but this backend speaks {', '.join(known)} only."
            )
        return code


def _seed(seed: int) -> None:
    """What libraries draw from."""
    np.random.seed(seed % 2**32)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)
