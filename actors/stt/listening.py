"""What STT backends share whose model hears one window after the other: cutting long audio, batches of windows of like
length, languages, cancelling, and the transcript that the windows add up to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from actors import languages, torch_device
from actors.backend import Capabilities
from actors.batch import Batch, Key, warm_up
from actors.messages import STT_RATE_HZ, Failed, SttRequest, SttResult, Word
from actors.stt.utterance import Utterance, Window

INT16_SCALE = 32_768.0


@dataclass(frozen=True)
class Heard:
    """What a model heard in one window."""

    text: str
    language: str | None = None
    """ISO 639-1 code, where the model tells."""
    logprob: float | None = None
    words: list[Word] = field(default_factory=list)
    """Times from the beginning of the window."""


Stop = Callable[[], bool]


class Windowed(ABC):
    """An STT backend; a subclass loads a model and works on windows."""

    name: ClassVar[str]
    devices: ClassVar[tuple[str, ...]] = ("cuda", "mps", "cpu")
    least_samples: ClassVar[int] = 0
    """Shorter audio is followed by silence."""

    def __init__(self, options: Any) -> None:
        self._options = options
        self._device = "cpu"

    @property
    def languages(self) -> tuple[str, ...] | None:
        """ISO 639-1 codes that the model knows; None: not told."""
        return None

    @property
    @abstractmethod
    def longest_s(self) -> float:
        """Windows are at most so long."""

    @abstractmethod
    def _groups(self, windows: Sequence[Window]) -> list[list[Window]]:
        """Windows that are heard together."""

    @abstractmethod
    def _decode(self, group: list[Window], stops: Sequence[Stop]) -> None:
        """Write what was said into each window of `group`, but into one whose `stops` holds."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(devices=self.devices, languages=self.languages, max_batch=self._options.max_batch)

    def transcribe(self, batch: Batch[SttRequest]) -> Iterator[tuple[Key, SttResult | Failed]]:
        """Yield each utterance's transcript as soon as it is known; of a long one, after each window, what was heard
        so far, which also shows that the work goes on.  A cancelled one gets none.
        """
        windows: list[Window] = []
        for key, request in batch.take():
            problem = self._problem(request)
            if problem is not None:
                yield key, Failed(f"stt {self.name}: {problem}")
                continue
            utterance = self._utterance(key, request)
            windows += utterance.windows
            if not utterance.windows:
                yield key, utterance.result()
        for group in self._groups(windows):
            live = [window for window in group if not batch.cancelled(window.utterance.key)]
            if not live:
                continue
            self._decode(live, [partial(batch.cancelled, window.utterance.key) for window in live])
            torch_device.release(self._device)
            for utterance in dict.fromkeys(window.utterance for window in live):
                if not batch.cancelled(utterance.key):
                    yield utterance.key, utterance.result() if utterance.left == 0 else utterance.so_far()

    def _positions(self, samples: int) -> int:
        """Of the encoder, for a window of `samples`, where the model has windows of several lengths."""
        return 0

    def _problem(self, request: SttRequest) -> str | None:
        """What is wrong with `request`, in words."""
        if len(request.audio) % 2:
            return f"{len(request.audio)} bytes of audio; expected int16 samples."
        language = self._asked(request)
        return self._language_problem(language) if language else None

    def _language_problem(self, language: str) -> str | None:
        """Why `language`, as asked for, cannot be heard, in words."""
        known = self.languages
        if known is None or languages.code(language) in known:
            return None
        return f"language {language!r} was asked for, which the model does not know; it knows {', '.join(known)}."

    def _asked(self, request: SttRequest) -> str | None:
        """The language that the utterance is said to be in, ISO 639-1."""
        asked = request.language or (None if self._options.language == "auto" else self._options.language)
        if asked is None:
            known = self.languages
            return known[0] if known is not None and len(known) == 1 else None
        return languages.code(asked)

    def _utterance(self, key: Key, request: SttRequest) -> Utterance:
        """`request` cut into windows; none where it is silent."""
        import numpy as np

        from actors.stt import windows

        utterance = Utterance(key, request, self._asked(request))
        audio = np.frombuffer(request.audio, "<i2").astype(np.float32) / INT16_SCALE
        if not windows.silent(audio):
            audio = np.pad(audio, (0, max(0, self.least_samples - len(audio))))
            for start, stop in windows.cuts(audio, self.longest_s):
                start_ms, positions = start * 1000 // STT_RATE_HZ, self._positions(stop - start)
                utterance.windows.append(Window(utterance, audio[start:stop], start_ms, positions))
        utterance.left = len(utterance.windows)
        return utterance


class Listener(Windowed):
    """A backend whose model tells for each window what it heard."""

    longest_s: ClassVar[float] = 30.0
    least_samples = STT_RATE_HZ // 10
    """Convolutions fail on less than a few frames."""
    like: ClassVar[float] = 2.0
    """The longest window of a batch is at most so many times as long as the shortest: the rest would be padding."""

    @abstractmethod
    def hear(self, windows: Sequence[Window], stops: Sequence[Stop]) -> Sequence[Heard]:
        """What was said in each of `windows` (float32 at 16 kHz, 0.1 s to `longest_s` long, of like length; of all or
        of none is the language known).  One whose `stops` holds is dropped: what is heard of it is never seen."""

    def warmup(self) -> None:
        """Transcribe a tone of 2 s."""
        import numpy as np

        tone = (3_000 * np.sin(np.arange(2 * STT_RATE_HZ) / 10)).astype("<i2")
        warm_up(self.transcribe, SttRequest(tone.tobytes()))

    def _decode(self, group: list[Window], stops: Sequence[Stop]) -> None:
        for window, heard, stop in zip(group, self.hear(group, stops), stops, strict=True):
            if not stop():
                _note(window, heard)

    @property
    def together(self) -> int:
        """Windows heard together: a CPU takes them one by one, which is as fast and answers the first sooner."""
        return 1 if self._device == "cpu" else int(self._options.max_batch)

    def _groups(self, windows: Sequence[Window]) -> list[list[Window]]:
        """Of like length, their language known or not."""
        size = self.together
        if size == 1:
            return [[window] for window in windows]
        groups: list[list[Window]] = []
        for window in sorted(windows, key=lambda each: len(each.audio)):
            group = groups[-1] if groups else []
            if (
                group
                and len(group) < size
                and len(window.audio) <= self.like * len(group[0].audio)
                and (window.utterance.language is None) == (group[0].utterance.language is None)
            ):
                group.append(window)
            else:
                groups.append([window])
        return groups


def _note(window: Window, heard: Heard) -> None:
    """Write what was `heard` into `window`, unless nobody said it."""
    from actors.stt import gates

    utterance = window.utterance
    window.logprob = heard.logprob
    text = heard.text.strip()
    window.rejected = gates.rejection(text, 0.0, 0.0)
    if window.rejected is None:
        window.text = text
        begin_ms, end_ms = window.start_ms, window.start_ms + len(window.audio) * 1000 // STT_RATE_HZ
        window.words = [
            Word(word.text, min(word.start_ms + begin_ms, end_ms), min(word.end_ms + begin_ms, end_ms))
            for word in heard.words
        ]
    utterance.language = utterance.language or heard.language
    window.decoded = True
    utterance.left -= 1
