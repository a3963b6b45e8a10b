"""The table of every backend, made from the registry: `python -m s2s.backend_table` prints it."""

from __future__ import annotations

from actors.registry import ENTRIES, STAGES, Entry

LANGUAGES = {
    ("vad", "silero"): "any",
    ("stt", "whisper"): "99, or English",
    ("stt", "faster-whisper"): "99, or English",
    ("stt", "whisper-mlx"): "99, or English",
    ("stt", "mlx-audio-whisper"): "99, or English",
    ("stt", "paraformer"): "zh, or en",
    ("tts", "pocket"): "one a model: en, fr, de, pt, it, es, nl",
    ("stt", "moonshine"): "one a checkpoint: en, ar, es, ja, ko, uk, vi, zh",
}
"""Where one loaded checkpoint does not tell of all, or no checkpoint does."""
LISTED = 10
"""More languages than these are counted."""


def backend_table() -> str:
    """Markdown, one line a backend."""
    lines = [
        "| stage | name | what | extra | devices | languages | streams | licence: code; weights | seen with |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for entry in sorted(ENTRIES, key=lambda each: STAGES.index(each.stage)):
        capabilities = entry.backend_class()(entry.options_class()()).capabilities
        cells = (
            entry.stage,
            f"`{entry.name}`",
            entry.summary,
            f"`{entry.extra}`" if entry.extra else "",
            "the server's" if entry.remote else ", ".join(entry.devices),
            _languages(entry, capabilities.languages),
            "yes" if capabilities.streams else "",
            entry.licence,
            entry.tested,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _languages(entry: Entry, known: tuple[str, ...] | None) -> str:
    told = LANGUAGES.get((entry.stage, entry.name))
    if told is not None:
        return told
    if known is None:
        return "the server's" if entry.remote else "the model's"
    return ", ".join(known) if len(known) <= LISTED else str(len(known))


if __name__ == "__main__":
    print(backend_table(), end="")
