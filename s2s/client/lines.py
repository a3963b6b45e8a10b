"""What both sides said, a line each, in the order in which they began."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Side = Literal["you", "agent", "note"]


@dataclass
class Line:
    """One utterance, or a word from the program itself."""

    side: Side
    item_id: str = ""
    text: str = ""
    notes: list[str] = field(default_factory=list)
    """Such as the latency, or that it was interrupted."""
    spoken: bool = False
    """Whether its speaker has ended; the text may still come (you), or the sound (agent)."""
    since: float = 0.0
    """When it was `spoken`."""
    done: bool = False

    def __str__(self) -> str:
        noted = f"  ({', '.join(self.notes)})" if self.notes else ""
        return f"{self.side + ':':6} {self.text.strip()}{noted}"


class Lines:
    """The lines that are not printed yet."""

    def __init__(self) -> None:
        self.open: list[Line] = []

    def of(self, side: Side, item_id: str) -> Line:
        """The line of an item, a new one where it has none."""
        for line in self.open:
            if line.item_id == item_id:
                return line
        line = Line(side, item_id)
        self.open.append(line)
        return line

    def find(self, item_id: str) -> Line | None:
        return next((line for line in self.open if line.item_id == item_id), None)

    def note(self, text: str) -> None:
        """A word from the program."""
        self.open.append(Line("note", text=text, done=True))

    def drop(self, item_id: str) -> None:
        """Nothing was said in it."""
        self.open = [line for line in self.open if line.item_id != item_id]

    def end(self) -> None:
        """What is open stays as it is."""
        self.open = [line for line in self.open if line.text or line.side == "note"]
        for line in self.open:
            line.done = True

    def take(self) -> list[Line]:
        """The lines that are done and have none before them that is not; each is given once."""
        ready = 0
        while ready < len(self.open) and self.open[ready].done:
            ready += 1
        taken, self.open = self.open[:ready], self.open[ready:]
        return taken
