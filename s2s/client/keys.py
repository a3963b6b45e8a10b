"""The key of push-to-talk: space or Enter on a terminal, a line where the input is none."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from s2s.client.devices import DeviceError


@contextmanager
def keys(toggle: Callable[[], None]) -> Iterator[None]:
    """Call `toggle` on the running event loop at each press.  Raises `DeviceError` where there can be none."""
    loop = asyncio.get_running_loop()
    try:
        terminal = sys.stdin.isatty()
        file = sys.stdin.fileno()
        loop.add_reader(file, lambda: None)  # fails for a file, and for /dev/null
        loop.remove_reader(file)
    except (OSError, ValueError, AttributeError):
        raise DeviceError("--push-to-talk needs a keyboard: run it in a terminal.") from None

    def pressed() -> None:
        typed = os.read(file, 256)
        if not typed:
            loop.remove_reader(file)  # the input is over
        for _ in range(sum(typed.count(key) for key in ((b" ", b"\n", b"\r") if terminal else (b"\n",)))):
            toggle()

    with _unbuffered(file) if terminal else _as_it_is():
        loop.add_reader(file, pressed)
        try:
            yield
        finally:
            loop.remove_reader(file)


@contextmanager
def _unbuffered(file: int) -> Iterator[None]:
    """Each key at once and unseen; Ctrl-C as always."""
    import termios
    import tty

    before = termios.tcgetattr(file)
    tty.setcbreak(file)
    try:
        yield
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield
