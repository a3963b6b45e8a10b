"""What the person sees: captions of both sides, the level of the microphone, what happens now."""

from __future__ import annotations

import statistics
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from s2s.client.conversation import Conversation
from s2s.client.lines import Line

QUIETEST_DB, LOUDEST_DB = -60.0, -10.0
METER_CELLS = 20
_STYLES = {"you": "cyan", "agent": "green", "note": "dim"}


class Terminal:
    """Lines that are finished scroll; below them, on a terminal, is what changes."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, conversation: Conversation, now: float) -> None:
        """Print the lines that are done; on a terminal also those that grow, the level and the state."""
        for line in conversation.lines.take():
            self._print(_text(line))
        if self._live is not None:
            growing = [_text(line) for line in conversation.lines.open if line.text]
            status = Text(f"{meter(conversation.level_db)}  {conversation.state(now)}", "bold")
            self._live.update(Group(*growing, status), refresh=True)

    def say(self, text: str) -> None:
        """A line of the program's own."""
        self._print(Text(text, "dim"))

    def _print(self, text: Text) -> None:
        """Wrapped on a terminal, where the lines below are counted; in a file each utterance is one line."""
        self._console.print(text, soft_wrap=not self._console.is_terminal)

    def sum_up(self, conversation: Conversation) -> None:
        """The figures of the whole conversation."""
        figures = [f"{conversation.answers} answer{'' if conversation.answers == 1 else 's'}"]
        if conversation.latencies_s:
            median = statistics.median(conversation.latencies_s)
            figures.append(f"{median:.2f} s from the end of speech to the first sound (median)")
        if gaps := conversation.player.underruns:
            figures.append(
                f"{gaps} gap{'' if gaps == 1 else 's'} in the sound: it came slower than it was played"
            )
        self.say("; ".join(figures))


def meter(level_db: float) -> str:
    """A bar from -60 to -10 dB."""
    share = (level_db - QUIETEST_DB) / (LOUDEST_DB - QUIETEST_DB)
    cells = round(METER_CELLS * min(1.0, max(0.0, share)))
    return "▮" * cells + "▯" * (METER_CELLS - cells)


def _text(line: Line) -> Text:
    return Text(str(line), _STYLES[line.side])
