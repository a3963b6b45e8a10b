"""llama.cpp's tokenizer, which xllamacpp offers on the server's own socket only."""

from __future__ import annotations

import http.client
import json
import socket
from functools import lru_cache
from typing import Protocol

REMEMBERED_TEXTS = 8
"""A prompt is measured, and then encoded."""


class Tokenizer(Protocol):
    def encode(self, text: str) -> list[int]: ...

    def count(self, text: str) -> int: ...


class SocketTokenizer:
    """The model's own tokenizer, which llama.cpp offers on its local socket only."""

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path
        self._connection: _UnixConnection | None = None
        self._remembered = lru_cache(REMEMBERED_TEXTS)(self._ask)

    def encode(self, text: str) -> list[int]:
        return list(self._remembered(text))

    def _ask(self, text: str) -> list[int]:
        body = json.dumps({"content": text, "add_special": False, "parse_special": True})
        for attempt in range(2):
            if self._connection is None:
                self._connection = _UnixConnection(self._socket_path)
            try:
                self._connection.request("POST", "/tokenize", body, {"Content-Type": "application/json"})
                answer = self._connection.getresponse().read()
                break
            except (http.client.HTTPException, OSError):
                # The connection is closed when it has been idle.
                self._connection = None
                if attempt:
                    raise
        tokens: list[int] = json.loads(answer)["tokens"]
        return tokens

    def count(self, text: str) -> int:
        return len(self.encode(text))


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=30)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
