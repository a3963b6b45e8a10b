"""TTS by Kokoro-82M (int8 ONNX on a CPU, torch on a GPU): English, clause by clause, at 24 kHz."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from actors.backend import Capabilities
from actors.batch import Batch, Key, warm_up
from actors.messages import Failed, TtsAudio, TtsDone, TtsRequest, Word
from actors.tts.clause_sound import Shape
from actors.tts.kokoro_model import (
    FRAME_SAMPLES,
    MAX_PHONEMES,
    RATE_HZ,
    KokoroModel,
    Run,
    Speech,
    Stopped,
    Voice,
)
from actors.tts.kokoro_voices import OPENAI_NAMES, VOICES, UnknownVoice, accent, find_voice
from actors.tts.phonemes import Phonemizer, Span, Unspeakable
from actors.tts.sound_stream import SoundStream

if TYPE_CHECKING:
    from actors.tts.kokoro_torch import KokoroTorch

MIN_SPEED, MAX_SPEED = 0.5, 2.0
"""Beyond these the model's speech is no longer understood; asked-for speeds are brought into this range."""
_MEMORY_BYTES = 700_000_000
"""Seen: 545 MB at the most, with clauses of up to 4 s."""
_SOON_PHONEMES = 60
"""A run may end at a sentence mark from here on, so that long text is heard before all of it is planned."""
_LONG_PHONEMES = 120
"""From here on any mark will do."""
_RUN_PHONEMES = 240
"""Without a mark, a run ends here at a word."""
_ONSET_FRAMES = 3
"""Speech comes this much ahead of the lengths that the model gives."""
_SENTENCE_MARKS = ".!?…"
_COMMA_MARKS = ",;:—()"


@dataclass(frozen=True)
class KokoroOptions:
    """What can be set for the `kokoro` backend."""

    model: str = "kokoro-82m-onnx-int8"
    """On a CPU: asset or folder with model.onnx and vocab.json."""
    torch_model: str = "hexgrad/Kokoro-82M"
    """On a GPU: hub id or folder with config.json and kokoro-v1_0.pth."""
    voices: str = "kokoro-voices"
    """Asset or folder with <voice>.bin files, float32[510, 256]."""
    voice: str = "af_heart"
    """Voice of requests that name none."""
    aliases: Mapping[str, str] = field(default_factory=lambda: dict(OPENAI_NAMES))
    """Other names for voices, in lower case; by default OpenAI's, so that their clients work unchanged."""
    lead_ms: int = 10
    """Silence kept in front of a clause, in ms."""
    tail_ms: int = 40
    """Silence kept behind a clause in front of its pause, in ms: the sound of its last phoneme fades here."""
    fade_ms: int = 5
    """Fade at both ends of a clause, in ms."""
    max_gap_ms: int = 220
    """Longest pause inside a clause, in ms: what the model pauses longer at a comma is left out."""
    comma_pause_ms: int = 120
    """Pause after a clause that ends in a comma, semicolon, colon or dash, in ms."""
    sentence_pause_ms: int = 280
    """Pause after a clause that ends a sentence, in ms."""
    plain_pause_ms: int = 0
    """Pause after a clause that ends in no mark, in ms."""


class Kokoro:
    """One loaded model.  `resume` is exact: the same request gives the same samples on CPUs of the same kind."""

    def __init__(self, options: KokoroOptions) -> None:
        self._options = options
        self._shape = Shape(options.lead_ms, options.tail_ms, options.fade_ms)
        self._default_voice = find_voice(options.voice, options.aliases)
        self._model: KokoroModel | KokoroTorch | None = None
        self._voices_folder = Path()
        self._voices: dict[str, Voice] = {}
        self._phonemizers: dict[str, Phonemizer] = {}

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            devices=("cuda", "mps", "cpu"),
            languages=("en",),
            streams=True,
            resume="exact",
            rate_hz=RATE_HZ,
            voices=(*VOICES, *self._options.aliases),
        )

    def load(self, device: str, dtype: str, threads: int) -> None:
        """`dtype` is that of the weights (int8 on a CPU, float32 on a GPU): any other but "auto" is an error."""
        from actors.assets import resolve

        own = "int8" if device == "cpu" else "float32"
        if dtype not in ("auto", own):
            raise ValueError(
                f"tts kokoro was asked for dtype {dtype!r}; on {device} its weights are {own}: use auto."
            )
        if device == "cpu":
            self._model = KokoroModel(resolve(self._options.model), threads, self._options.max_gap_ms)
        else:
            from actors.tts.kokoro_torch import KokoroTorch

            self._model = KokoroTorch(self._options.torch_model, device, threads, self._options.max_gap_ms)
        self._voices_folder = resolve(self._options.voices)
        self._voice(self._default_voice)
        self._phonemizer(accent(self._default_voice))

    def warmup(self) -> None:
        """One short sentence; the default voice is measured for it."""
        warm_up(self.synthesize, TtsRequest("Sure, I can."))

    def memory_bytes(self, dtype: str) -> int:
        return _MEMORY_BYTES

    def synthesize(self, batch: Batch[TtsRequest]) -> Iterator[tuple[Key, TtsAudio | TtsDone | Failed]]:
        """Yield each clause's sound in pieces that know their words' times, then its length.

        A cancelled clause stops inside the model's run, within some 30 ms, and yields nothing more.
        """
        while taken := batch.take(1):
            key, request = taken[0]
            run = Run()

            def stop_if_cancelled(key: Key = key, run: Run = run) -> None:
                if batch.cancelled(key):
                    run.stop()

            batch.on_change(stop_if_cancelled)
            stop_if_cancelled()
            try:
                for result in self._clause(request, run):
                    if run.stopped:
                        break
                    yield key, result
            except Stopped:
                continue
            except (UnknownVoice, Unspeakable) as error:
                yield key, Failed(f"tts kokoro: {error}")
            finally:
                batch.on_change(None)

    def _clause(self, request: TtsRequest, run: Run) -> Iterator[TtsAudio | TtsDone | Failed]:
        if request.language is not None and not request.language.lower().startswith("en"):
            yield Failed(
                f"tts kokoro: language {request.language!r} was asked for, but this backend speaks English (en) only."
            )
            return
        voice = find_voice(request.voice or self._default_voice, self._options.aliases)
        speed = min(max(request.speed, MIN_SPEED), MAX_SPEED)
        total, skip = 0, request.skip_samples
        words: list[Word] = []
        for spans in runs(self._phonemizer(accent(voice)).spans(request.text)):
            phonemes, starts = laid_out(spans)
            if not phonemes.strip(_SENTENCE_MARKS + _COMMA_MARKS + " "):
                continue
            speech = self._loaded.speak(phonemes, self._voice(voice), speed, run)
            sound = SoundStream(RATE_HZ, skip, shape=self._shape)
            for piece in _pieces(speech, sound, self._pause_ms(phonemes)):
                times = word_times(spans, starts, speech, sound.trimmed, total)
                yield msgspec.structs.replace(piece, words=[*words, *times])
            words += word_times(spans, starts, speech, sound.trimmed, total)
            skip = max(0, skip - sound.samples)
            total += sound.samples
        yield TtsDone(total)

    def _pause_ms(self, phonemes: str) -> int:
        last = phonemes.rstrip(" )")[-1:]
        if last and last in _SENTENCE_MARKS:
            return self._options.sentence_pause_ms
        return self._options.comma_pause_ms if last and last in _COMMA_MARKS else self._options.plain_pause_ms

    @property
    def _loaded(self) -> KokoroModel | KokoroTorch:
        if self._model is None:
            raise RuntimeError("tts kokoro was asked to speak before load() was called.")
        return self._model

    def _voice(self, name: str) -> Voice:
        if name not in self._voices:
            rows = np.fromfile(self._voices_folder / f"{name}.bin", np.float32)
            self._voices[name] = Voice(rows.reshape(MAX_PHONEMES, -1))
        return self._voices[name]

    def _phonemizer(self, wanted: str) -> Phonemizer:
        if wanted not in self._phonemizers:
            self._phonemizers[wanted] = Phonemizer(wanted)
        return self._phonemizers[wanted]


def _pieces(speech: Speech, sound: SoundStream, pause_ms: int) -> Iterator[TtsAudio]:
    for samples in speech.sound:
        yield from sound.feed(samples)
    yield from sound.finish(pause_ms)


def runs(spans: list[Span]) -> Iterator[list[Span]]:
    """Parts of a clause for one run of the model each: they end at marks where they can, at words where they must."""
    part: list[Span] = []
    length = 0
    for span in (piece for whole in spans for piece in _short(whole)):
        if part and length + 1 + len(span.phonemes) > _RUN_PHONEMES:
            yield part
            part, length = [], 0
        part.append(span)
        length += 1 + len(span.phonemes)
        mark = span.phonemes[-1:] or " "
        if (mark in _SENTENCE_MARKS and length >= _SOON_PHONEMES) or (
            mark in _COMMA_MARKS and length >= _LONG_PHONEMES
        ):
            yield part
            part, length = [], 0
    if part:
        yield part


def _short(span: Span) -> Iterator[Span]:
    """A single span that is longer than a run, cut up; any other as it is."""
    for start in range(0, max(1, len(span.phonemes)), MAX_PHONEMES):
        yield Span(span.source if start == 0 else "", span.phonemes[start : start + MAX_PHONEMES])


def laid_out(spans: list[Span]) -> tuple[str, list[int]]:
    """The phonemes of one run, and where in them each span starts."""
    text, starts = "", []
    for span in spans:
        if text and span.phonemes and span.phonemes[0] not in _SENTENCE_MARKS + ",;:)":
            text += " "
        starts.append(len(text))
        text += span.phonemes
    return text, starts


def word_times(spans: list[Span], starts: list[int], speech: Speech, trimmed: int, offset: int) -> list[Word]:
    """Where each span lies in the clause, from the model's own phoneme lengths (right to some 50 ms).

    `trimmed`: samples left out ahead of `speech.sound`; `offset`: samples of the clause before this run.
    """
    ends_at = np.concatenate([[0], np.cumsum(speech.frames)])
    begins = [int(ends_at[start + 1] - _ONSET_FRAMES) * FRAME_SAMPLES for start in starts]
    at = [speech.position(min(sample, speech.end)) for sample in [*begins, speech.end]]
    bounds = [offset + max(0, sample - trimmed) for sample in at]
    return [
        Word(span.source, bounds[index] * 1000 // RATE_HZ, bounds[index + 1] * 1000 // RATE_HZ)
        for index, span in enumerate(spans)
        if span.source
    ]
