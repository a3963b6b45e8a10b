"""Interim transcripts of a turn that is being spoken: the same request again and again, within a budget of compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from actors.messages import Rank, Result, SttRequest, SttResult
from orchestration.session.audio_buffer import to_samples
from orchestration.session.core import Core


@dataclass(frozen=True)
class Rhythm:
    """How often interim transcripts are asked for."""

    first_ms: int = 600
    """Speech before the first request: of less, nothing is stable."""
    step_ms: int = 400
    """New sound before the next one."""
    rank: Rank = Rank.PARTIAL
    share: float | None = None
    """Of the time of one STT replica, at most; None: what the server allows."""


class Partials:
    """Of one turn.  `heard(result, now)` is called with each interim transcript, also one that was rejected.

    After a request that took t seconds, the next one waits until t / `share` have passed since it was made: the turn's
    interim transcripts never take more than `share` of the time of one STT replica.
    """

    def __init__(
        self,
        core: Core,
        generation: str,
        heard: Callable[[SttResult, float], None],
        rhythm: Rhythm = Rhythm(),
    ) -> None:
        self._core = core
        self._rhythm = rhythm
        self._share = rhythm.share or core.defaults.partial_share
        self._generation = generation
        self._heard = heard
        self._attempt = 0
        self._asked: float | None = None
        self._not_before = float("-inf")
        self._next_at: int | None = None

    def look(self, start: int, until: int, sound: Callable[[], bytes], now: float) -> None:
        """Speech that began at sample `start` has reached sample `until`: ask for its words if that is due."""
        if self._next_at is None:
            self._next_at = start + to_samples(self._rhythm.first_ms)
        if self._asked is not None or until < self._next_at or now < self._not_before:
            return
        self._attempt += 1
        self._asked = now
        self._next_at = until + to_samples(self._rhythm.step_ms)
        input = self._core.settings.input.transcription
        language = (input.language if input is not None else None) or self._core.defaults.language
        prompt = input.prompt if input is not None else None
        request = SttRequest(sound(), language, prompt, interim=True)
        self._core.outbox.submit(request, self._name, self._result, now, self._rhythm.rank)

    def stop(self) -> None:
        """The final transcript is asked for: it goes first."""
        if self._asked is not None:
            self._core.outbox.cancel(self._name)
            self._asked = None

    @property
    def _name(self) -> str:
        return f"{self._generation}.{self._attempt}"

    def _result(self, result: Result, now: float) -> None:
        if isinstance(result, SttResult) and not result.final:
            return
        asked, self._asked = self._asked, None
        assert asked is not None, "only one request is open"
        self._not_before = asked + (now - asked) / self._share
        if isinstance(result, SttResult):
            self._heard(result, now)
