"""`ask`: recordings in, spoken answers out, each file one turn of one conversation."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import ray

from actors.messages import STT_RATE_HZ
from actors.registry import NONE
from orchestration.session import events
from orchestration.session.timeline import TurnRecord
from s2s.audio import AudioFileError, Clip, read_audio, write_wav
from s2s.config import Config, StageSettings
from s2s.gateway import start_gateway
from s2s.system import running

DONE, FAILED, BAD_INPUT, NO_SPEECH = 0, 1, 2, 3
CHUNK_BYTES = 64_000
"""Two seconds of sound in one event."""
EVENTS_PER_CALL = 50
_MANUAL = {
    "type": "realtime",
    "audio": {"input": {"turn_detection": None, "transcription": {"model": "default"}}},
}


_HEARD = {"type": "realtime", "audio": {"input": {"turn_detection": None}}}


class TurnFailed(RuntimeError):
    """The answer could not be made; says which stage failed and why."""


@dataclass
class Turn:
    """One file and its answer."""

    path: Path
    clip: Clip
    transcript: str = ""
    answer: str = ""
    pieces: list[bytes] = field(default_factory=list)
    rate_hz: int = STT_RATE_HZ
    output: Path | None = None
    record: TurnRecord = field(default_factory=TurnRecord)


def run(config: Config, args: argparse.Namespace) -> int:
    """Answer every file; the exit code."""
    try:
        turns = [Turn(path, read_audio(path)) for path in _inputs(args.input)]
        folder = _writable(Path(args.output_dir))
    except AudioFileError as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    say = _silent if args.json else _say
    config = replace(config, turn=StageSettings())  # a file's end is the end of its turn
    with running(config) as system:
        gateway = start_gateway(config, system.supervisor)
        try:
            conversation = Conversation(gateway, say, transcribes=config.stt.backend != NONE)
            for number, turn in enumerate(turns, 1):
                conversation.take(turn)
                if turn.answer:
                    turn.output = folder / f"{number:02}-{turn.path.stem}.wav"
                    write_wav(turn.output, Clip(b"".join(turn.pieces), turn.rate_hz))
                    say(f"\n       spoken answer: {turn.output}\n")
            if args.json:
                placement = ray.get(system.supervisor.placement.remote())
                print(json.dumps(_report(system.startup_s, placement, turns), indent=2))
        except AudioFileError as error:
            print(f"error: {error}", file=sys.stderr)
            return BAD_INPUT
        except TurnFailed as error:
            print(f"error: {error}", file=sys.stderr)
            return FAILED
        finally:
            ray.get(gateway.stop.remote())
    mute = [turn.path for turn in turns if not (turn.transcript or turn.answer)]
    for path in mute:
        print(f"error: {path}: no speech found.", file=sys.stderr)
    return NO_SPEECH if mute else DONE


def _inputs(given: Sequence[str] | None) -> list[Path]:
    """The files that were named, or the packaged spoken question."""
    if given:
        return [Path(each) for each in given]
    from actors.assets import question

    return [question()]


def _writable(folder: Path) -> Path:
    """`folder`, made if need be; raises `AudioFileError` before anything is started if it can't be written."""
    probe = folder / ".s2s-probe"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise AudioFileError(f"{folder}: cannot be written ({error.strerror}).") from error
    return folder


def _say(text: str) -> None:
    print(text, end="", flush=True)


def _silent(_: str) -> None:
    pass


class Conversation:
    """One session of the gateway, driven by its events."""

    def __init__(
        self,
        gateway: Any,
        say: Callable[[str], None],
        session: Mapping[str, Any] | None = None,
        see: Callable[[events.ServerEvent], None] | None = None,
        transcribes: bool = True,
    ) -> None:
        """`say` gets the words as they come, `see` every event; `session` is added to the session's settings.  Where
        nothing `transcribes`, the LLM hears."""
        self._gateway = gateway
        self._say = say
        self._see = see
        self._turn_number = 0
        self._transcribes = transcribes
        self._session: str = ray.get(gateway.open_session.remote())
        self._send(events.SessionUpdate(session={**(_MANUAL if transcribes else _HEARD), **(session or {})}))

    def take(self, turn: Turn) -> None:
        """Say `turn`, hear the answer.  Where it is transcribed, nothing is answered without words in it.
        Raises `TurnFailed`."""
        pcm = turn.clip.pcm
        for start in range(0, len(pcm), CHUNK_BYTES * EVENTS_PER_CALL):
            block = pcm[start : start + CHUNK_BYTES * EVENTS_PER_CALL]
            chunks = [block[at : at + CHUNK_BYTES] for at in range(0, len(block), CHUNK_BYTES)]
            self._send(*(events.InputAudioBufferAppend(audio=chunk) for chunk in chunks))
        self._send(events.InputAudioBufferCommit())
        if self._transcribes:
            turn.transcript = self._transcript()
        if turn.transcript or not self._transcribes:
            self._say(f"  you: {turn.transcript or turn.path}\nagent: ")
            self._send(events.ResponseCreate())
            self._answer(turn)
        turns: list[TurnRecord] = ray.get(self._gateway.turns.remote(self._session))
        if turns and turns[-1].number > self._turn_number:
            turn.record = turns[-1]
            self._turn_number = turn.record.number

    def close(self) -> None:
        ray.get(self._gateway.close_session.remote(self._session))

    def _send(self, *client_events: events.ClientEvent) -> None:
        ray.get(self._gateway.send_events.remote(self._session, client_events))

    def _events(self) -> Iterator[events.ServerEvent]:
        while True:
            batch = ray.get(self._gateway.next_events.remote(self._session))
            if not batch:
                raise TurnFailed("The session ended before its answer was out.")
            for event in batch:
                if self._see is not None:
                    self._see(event)
                yield event

    def _transcript(self) -> str:
        for event in self._events():
            match event:
                case events.InputAudioTranscriptionCompleted(transcript=transcript):
                    return transcript
                case events.InputAudioTranscriptionFailed(error=error):
                    raise TurnFailed(error.message)
                case events.Error(error=error) if error.code == "input_audio_buffer_commit_empty":
                    return ""
                case events.Error(error=error):
                    raise TurnFailed(error.message)
        raise AssertionError("unreachable: _events ends by raising")

    def _answer(self, turn: Turn) -> None:
        for event in self._events():
            match event:
                case events.ResponseAudioTranscriptDelta(delta=delta):
                    self._say(delta)
                    turn.answer += delta
                case events.ResponseAudioDelta(delta=pcm, rate_hz=rate_hz):
                    turn.pieces.append(pcm)
                    turn.rate_hz = rate_hz
                case events.ResponseDone(response=response):
                    details = response.status_details
                    if response.status == "failed" and details is not None and details.error is not None:
                        raise TurnFailed(str(details.error.message))
                    return
                case events.Error(error=error) if error.code == "language_not_spoken":
                    print(f"note: {error.message}", file=sys.stderr)
                case events.Error(error=error):
                    raise TurnFailed(error.message)


def _report(startup_s: float, placement: list[Any], turns: Sequence[Turn]) -> dict[str, Any]:
    return {
        "startup_s": round(startup_s, 2),
        "placement": placement,
        "turns": [_turn_report(turn) for turn in turns],
    }


def _turn_report(turn: Turn) -> dict[str, Any]:
    record = turn.record
    return {
        "input": str(turn.path),
        "duration_s": round(turn.clip.duration_s, 3),
        "speech_s": round(record.speech_ms / 1000, 3),
        "language": record.language,
        "transcript": turn.transcript,
        "answer": turn.answer,
        "output": str(turn.output) if turn.output else None,
        "timings_ms": {
            "stt": _ms(record.stt_start, record.transcript_done),
            "llm_first_token": _ms(record.llm_start, record.first_token),
            "llm_first_clause": _ms(record.llm_start, record.first_clause),
            "tts_first_audio": _ms(record.tts_start, record.first_audio),
            "total": _ms(record.stt_start, record.done),
        },
    }


def _ms(start: float | None, end: float | None) -> int | None:
    return None if start is None or end is None else round((end - start) * 1000)
