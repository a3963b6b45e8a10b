"""Stages that answer at once, for tests of the edge without Ray or models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from actors.messages import (
    LlmDone,
    LlmRequest,
    LlmText,
    Rank,
    Request,
    Result,
    SttRequest,
    SttResult,
    TtsAudio,
    TtsDone,
    TtsRequest,
    VadRequest,
    VadResult,
)

Answer = Callable[[Request], Sequence[Result]]


def plain_answers(request: Request) -> Sequence[Result]:
    """Loud frames are speech; everybody says "hello", is answered "Hi there." and hears 0.1 s of it."""
    match request:
        case VadRequest(frames=frames):
            count = len(frames) // 1024
            loud = [max(frames[i * 1024 : (i + 1) * 1024]) > 0 for i in range(count)]
            return [VadResult([0.9 if each else 0.05 for each in loud], b"\0" * 1024, frames[-128:])]
        case SttRequest():
            return [SttResult("hello", language="en")]
        case LlmRequest():
            return [LlmText("Hi "), LlmText("there."), LlmDone("stop", input_tokens=9, output_tokens=2)]
        case TtsRequest():
            return [TtsAudio(b"\1\0" * 2400, 24_000), TtsDone(2400)]
    raise AssertionError(request)


class FakeLinks(dict[str, "FakeLink"]):
    """The links of a gateway; results come on the next turn of the loop."""

    def __init__(self, answer: Answer = plain_answers) -> None:
        super().__init__({stage: FakeLink(self) for stage in ("vad", "turn", "stt", "llm", "tts")})
        self.answer = answer
        self.deliver: Callable[[str, int, Result], None] = lambda session, work, result: None
        self.submitted: list[tuple[str, Rank, Request]] = []
        self.cancelled: set[tuple[str, str]] = set()
        self.closed: set[str] = set()


class FakeLink:
    def __init__(self, links: FakeLinks) -> None:
        self._links = links

    def submit(
        self, session: str, generation: str, work: int, rank: Rank, due_in_s: float, request: Request
    ) -> None:
        self._links.submitted.append((session, rank, request))
        for result in self._links.answer(request):
            asyncio.get_running_loop().call_soon(self._deliver, session, generation, work, result)

    def _deliver(self, session: str, generation: str, work: int, result: Result) -> None:
        if (session, generation) not in self._links.cancelled:
            self._links.deliver(session, work, result)

    def cancel(self, session: str, generation: str) -> None:
        self._links.cancelled.add((session, generation))

    def promote(self, session: str, generation: str, due_in_s: float) -> None:
        pass

    def close(self, session: str) -> None:
        self._links.closed.add(session)
