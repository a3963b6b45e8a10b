"""One connection's events to and from the wire: its audio formats, with the resamplers' state."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from orchestration.session import config, events, items
from s2s.audio import AudioFormat, Decoder, Encoder
from s2s.realtime.events import parse

MAX_DELTA_BYTES = 32 * 1024
"""Audio in one `response.output_audio.delta`, before base64."""


class _AudioDelta(events._OfPart, tag="response.output_audio.delta"):
    delta: bytes


class _OutputAudio(msgspec.Struct, tag_field="type", tag="output_audio"):
    transcript: str | None
    audio: bytes


def wire_format(audio_format: config.AudioFormat) -> AudioFormat:
    match audio_format:
        case config.Pcm(rate=rate):
            return AudioFormat("audio/pcm", rate)
        case config.Pcmu():
            return AudioFormat("audio/pcmu", 8_000)
        case config.Pcma():
            return AudioFormat("audio/pcma", 8_000)


class Codec:
    """Follows the session's formats as its events go by."""

    def __init__(self) -> None:
        self._decoder = Decoder(AudioFormat())
        self._output = AudioFormat()
        self._encoders: dict[str, Encoder] = {}
        self._encode = msgspec.json.Encoder().encode

    def inbound(self, data: str | bytes) -> list[events.ClientEvent]:
        """The client's event, audio as int16 at 16 kHz.  Raises `EventError`."""
        event = parse(data)
        match event:
            case events.InputAudioBufferAppend(audio=audio):
                event.audio = self._decoder.feed(audio)
            case events.InputAudioBufferCommit():
                tail = self._decoder.feed(b"", last=True)
                if tail:
                    return [events.InputAudioBufferAppend(audio=tail), event]
            case events.InputAudioBufferClear():
                self._decoder.clear()
            case events.ConversationItemCreate(item=items.MessageItem(content=content)):
                for part in content:
                    if isinstance(part, items.InputAudio) and isinstance(part.audio, bytes):
                        part.audio = Decoder(self._decoder.format).feed(part.audio, last=True)
        return [event]

    def outbound(self, event: events.ServerEvent) -> Iterator[bytes]:
        """The JSON messages that say `event`."""
        match event:
            case events.SessionCreated(session=session) | events.SessionUpdated(session=session):
                self._follow(session)
            case events.ResponseCreated(response=response):
                self._encoders[response.id] = Encoder(wire_format(response.audio.output.format))
            case events.ResponseAudioDelta():
                yield from self._audio(event, self._encoder(event).feed(event.delta, event.rate_hz))
                return
            case events.ResponseAudioDone():
                yield from self._audio(event, self._encoder(event).finish())
            case events.ResponseDone(response=response):
                self._encoders.pop(response.id, None)
            case events.ConversationItemRetrieved(item=items.MessageItem() as item):
                yield self._encode(msgspec.structs.replace(event, item=self._with_audio(item)))
                return
        yield self._encode(event)

    def _follow(self, session: config.EffectiveSession) -> None:
        wanted = wire_format(session.audio.input.format)
        if wanted != self._decoder.format:
            self._decoder = Decoder(wanted)
        if isinstance(session, config.RealtimeSession):
            self._output = wire_format(session.audio.output.format)

    def _encoder(self, event: events.ResponseAudioDelta | events.ResponseAudioDone) -> Encoder:
        return self._encoders.setdefault(event.response_id, Encoder(self._output))

    def _audio(
        self, event: events.ResponseAudioDelta | events.ResponseAudioDone, audio: bytes
    ) -> Iterator[bytes]:
        for start in range(0, len(audio), MAX_DELTA_BYTES):
            yield self._encode(
                _AudioDelta(
                    event_id=event.event_id
                    if start == 0 and isinstance(event, events.ResponseAudioDelta)
                    else _more(event, start),
                    response_id=event.response_id,
                    item_id=event.item_id,
                    output_index=event.output_index,
                    content_index=event.content_index,
                    delta=audio[start : start + MAX_DELTA_BYTES],
                )
            )

    def _with_audio(self, item: items.MessageItem) -> items.MessageItem:
        """A retrieved item's audio in the formats of the session."""
        content: list[object] = []
        for part in item.content:
            if isinstance(part, items.InputAudio) and isinstance(part.audio, bytes):
                encoder = Encoder(self._decoder.format)
                audio = encoder.feed(part.audio, 16_000) + encoder.finish()
                part = items.InputAudio(transcript=part.transcript, audio=audio)
            elif isinstance(part, items.OutputAudio) and isinstance(part.audio, bytes):
                encoder = Encoder(self._output)
                rate_hz = part.rate_hz if isinstance(part.rate_hz, int) else self._output.rate_hz
                content.append(
                    _OutputAudio(part.transcript, encoder.feed(part.audio, rate_hz) + encoder.finish())
                )
                continue
            content.append(part)
        return msgspec.structs.replace(item, content=content)


def _more(event: events.ResponseAudioDelta | events.ResponseAudioDone, start: int) -> str:
    """An id for a further piece of one event's audio."""
    return f"{event.event_id}_{start // MAX_DELTA_BYTES + 1}"
