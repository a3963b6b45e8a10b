"""What crosses between the two halves of the queue, and its encoding.

A batch is one `bytes` object of MessagePack, so that a Ray call has one small argument to copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from actors.messages import (
    Failed,
    LlmDone,
    LlmRequest,
    LlmText,
    LlmToolCall,
    Request,
    Result,
    SttRequest,
    SttResult,
    TtsAudio,
    TtsDone,
    TtsRequest,
    TurnRequest,
    TurnResult,
    VadRequest,
    VadResult,
)

MAX_BATCH_BYTES = 100_000
"""Largest argument of a call; Ray moves anything above 100 KiB through the object store without a word."""
MAX_PIECE_BYTES = 64_000
"""Largest piece of audio in a result."""

AnyRequest = VadRequest | TurnRequest | SttRequest | LlmRequest | TtsRequest
AnyResult = VadResult | TurnResult | SttResult | LlmText | LlmToolCall | LlmDone | TtsAudio | TtsDone | Failed


class Reference(msgspec.Struct, frozen=True, array_like=True, tag="ref"):
    """A request too large to travel inside a batch."""

    position: int
    """Which of the call's object references holds it, encoded by `encode_request`."""


class Item(msgspec.Struct, frozen=True, array_like=True):
    """A request on its way to a replica.  `(source, id, attempt)` names this sending of it."""

    id: int
    """Unique within the source."""
    attempt: int
    """1 at first, raised each time that it is sent again."""
    source: str
    session: str
    generation: str
    rank: int
    due_in_s: float
    """Seconds left at the moment of sending, negative when late; the receiver adds its own clock."""
    payload: AnyRequest | Reference


class Delivery(msgspec.Struct, frozen=True, array_like=True):
    """Items of one producer for one replica."""

    number: int
    """1, 2, 3, ... for each pair of producer and replica."""
    items: list[Item]


class Control(msgspec.Struct, frozen=True, array_like=True):
    """A word to a replica about items that it has or is about to get."""

    verb: Literal["cancel", "promote", "close", "recall"]
    session: str
    generation: str
    """Empty for `close`, which is about all of the session."""
    due_in_s: float
    """For `promote`."""
    number: int
    """The last delivery sent: the replica remembers the word until it has seen that one."""
    item: int = -1
    """For `recall`: give this item back if it has not begun, another replica is idle."""


class ItemResult(msgspec.Struct, frozen=True, array_like=True):
    """One result of one sending of an item."""

    id: int
    attempt: int
    index: int
    """0, 1, 2, ... within the attempt."""
    result: AnyResult


class Returns(msgspec.Struct, frozen=True, array_like=True):
    """What a replica tells a producer, in answer to a delivery or by itself."""

    replica: str
    limit: int
    """How many items the producer may have sent this replica, all in all: its credit.  It never shrinks."""
    results: list[ItemResult] = []
    replaced: list[int] = []
    """Items that waited and gave way to a newer one: they get no result."""
    recalled: list[int] = []
    """Items given back before they began."""
    missed: list[int] = []
    """Items whose reference could not be fetched: not delivered."""


_encoder = msgspec.msgpack.Encoder()
_delivery_decoder = msgspec.msgpack.Decoder(Delivery)
_returns_decoder = msgspec.msgpack.Decoder(Returns)
_controls_decoder = msgspec.msgpack.Decoder(list[Control])
_request_decoder: msgspec.msgpack.Decoder[AnyRequest] = msgspec.msgpack.Decoder(AnyRequest)


def encode_item(item: Item) -> bytes:
    return _encoder.encode(item)


def encode_delivery(number: int, items: Iterable[bytes]) -> bytes:
    """A `Delivery` of items that `encode_item` has encoded."""
    return _encoder.encode((number, [msgspec.Raw(item) for item in items]))


def decode_delivery(batch: bytes) -> Delivery:
    return _delivery_decoder.decode(batch)


def encode_request(request: Request) -> bytes:
    return _encoder.encode(request)


def decode_request(encoded: bytes) -> Request:
    return _request_decoder.decode(encoded)


def encode_controls(controls: Sequence[Control]) -> bytes:
    return _encoder.encode(controls)


def decode_controls(batch: bytes) -> list[Control]:
    return _controls_decoder.decode(batch)


def encode_returns(returns: Returns) -> bytes:
    return _encoder.encode(returns)


def decode_returns(batch: bytes) -> Returns:
    return _returns_decoder.decode(batch)


def pieces(result: Result) -> list[Result]:
    """`result` in pieces small enough to travel: audio is cut at sample boundaries."""
    if not isinstance(result, TtsAudio) or len(result.pcm) <= MAX_PIECE_BYTES:
        return [result]
    return [
        TtsAudio(result.pcm[start : start + MAX_PIECE_BYTES], result.rate_hz)
        for start in range(0, len(result.pcm), MAX_PIECE_BYTES)
    ]


def size_bytes(result: Result) -> int:
    """Roughly how many bytes `result` takes on the wire."""
    match result:
        case TtsAudio(pcm=pcm):
            return len(pcm) + 32
        case VadResult(state=state, context=context, probabilities=probabilities):
            return len(state) + len(context) + 9 * len(probabilities) + 32
        case _:
            return len(_encoder.encode(result)) + 16
