"""Test speech: how recordings are cut into samples with known texts, and a question is spoken by Kokoro.

Everything is written as 16 kHz mono PCM16 WAV.
"""

import json
import wave
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from actors.assets.asset import AssetError
from actors.wav import wav

SAMPLE_RATE_HZ = 16_000
KOKORO_RATE_HZ = 24_000
TEXTS_FILE = "texts.json"

QUESTION_TEXT = "What is the capital of France?"
QUESTION_PHONEMES = "wˌʌt ɪz ðə kˈæpəɾᵊl ʌv fɹˈæns?"
QUESTION_VOICE = "af_heart"


@dataclass(frozen=True)
class Sample:
    """A recording of real speech, 16 kHz mono PCM16, and exactly what is said in it."""

    path: Path
    text: str


@dataclass(frozen=True)
class Cut:
    """A piece of a recording, in samples at the recording's own rate; `stop` 0 is its end."""

    recording: str
    name: str
    text: str
    start: int = 0
    stop: int = 0


_AUSTEN = "sense_and_sensibility_01_austen_64kb"

CUTS = (
    Cut(
        f"{_AUSTEN}-0870.wav",
        "austen-1",
        "And Mister John Dashwood had then leisure to consider how much there might be prudently in his power to do "
        "for them.",
    ),
    Cut(f"{_AUSTEN}-0880.wav", "austen-2", "He was not an ill disposed young man."),
    Cut(
        f"{_AUSTEN}-0890.wav",
        "austen-3",
        "Unless to be rather cold hearted and rather selfish is to be ill disposed.",
    ),
    Cut(
        f"{_AUSTEN}-0920.wav",
        "austen-4",
        "Had he married a more a amiable woman, he might have been made still more respectable than he was.",
    ),
    Cut(f"{_AUSTEN}-0930.wav", "austen-5", "He might even have been made amiable himself."),
    Cut(
        "two_cities.wav",
        "dickens-01",
        "It was the best of times, it was the worst of times.",
        33_600,
        220_800,
    ),
    Cut(
        "two_cities.wav",
        "dickens-02",
        "It was the age of wisdom, it was the age of foolishness.",
        220_800,
        397_920,
    ),
    Cut(
        "two_cities.wav",
        "dickens-03",
        "It was the epoch of belief, it was the epoch of incredulity.",
        397_920,
        627_360,
    ),
    Cut(
        "two_cities.wav",
        "dickens-04",
        "It was the season of light, it was the season of darkness.",
        627_360,
        810_240,
    ),
    Cut(
        "two_cities.wav",
        "dickens-05",
        "It was the spring of hope, it was the winter of despair.",
        810_240,
        999_360,
    ),
    Cut(
        "two_cities.wav",
        "dickens-06",
        "We had everything before us, we had nothing before us.",
        999_360,
        1_161_600,
    ),
    Cut(
        "two_cities.wav",
        "dickens-07",
        "We were all going direct to heaven, we were all going direct the other way.",
        1_161_600,
        1_371_840,
    ),
    Cut(
        "two_cities.wav",
        "dickens-08",
        "In short, the period was so far like the present period.",
        1_371_840,
        1_560_000,
    ),
    Cut(
        "two_cities.wav",
        "dickens-09",
        "That some of its noisiest authorities insisted on its being received.",
        1_560_000,
        1_763_520,
    ),
    Cut(
        "two_cities.wav",
        "dickens-10",
        "For good or for evil, in the superlative degree of comparison only.",
        1_763_520,
        2_025_600,
    ),
    Cut("beckett.wav", "beckett", "Ever tried. Ever failed. No matter. Try again. Fail again. Fail better."),
    Cut("goforward.raw", "command", "Go forward ten meters."),
    Cut("001.wav", "cards-1", "Ten of clubs."),
    Cut("002.wav", "cards-2", "Four, queen of clubs."),
    Cut("003.wav", "cards-3", "Seven of clubs."),
    Cut("005.wav", "cards-5", "Eight of spades, four of clubs, seven of hearts."),
)


def samples(*, progress: bool = True) -> list[Sample]:
    """Real speech with known texts, longest connected reading first. Fetched if need be; raises AssetError.

    Where only one of the two packages of recordings can be had, its samples alone are returned.
    """
    from actors.assets.store import resolve

    folder = resolve("speech-samples", progress=progress)
    texts: dict[str, str] = json.loads((folder / TEXTS_FILE).read_text(encoding="utf-8"))
    return [Sample(folder / name, text) for name, text in texts.items()]


def question(*, progress: bool = True) -> Path:
    """A WAV in which `QUESTION_TEXT` is spoken, 16 kHz mono PCM16. Made if need be; raises AssetError."""
    from actors.assets.store import resolve

    return resolve("speech-question", progress=progress)


def cut_samples(sources: list[Path], folder: Path) -> None:
    """Cuts every recording that the source folders hold; the texts go beside them, by file name."""
    texts = {}
    for cut in CUTS:
        recording = next(
            (source / cut.recording for source in sources if (source / cut.recording).exists()), None
        )
        if recording is None:
            continue
        sound, rate_hz = _read(recording)
        name = f"{cut.name}.wav"
        _write(folder / name, sound[cut.start : cut.stop or None], rate_hz)
        texts[name] = cut.text
    if not texts:
        raise AssetError(f"no known recording in {', '.join(str(source) for source in sources)}")
    (folder / TEXTS_FILE).write_text(json.dumps(texts, indent=1), encoding="utf-8")


def speak_question(sources: list[Path], folder: Path) -> None:
    """Speaks the question with Kokoro's weights alone: its phonemes are stated, so no text front end is needed."""
    import onnxruntime

    model, voices = sources
    vocabulary: dict[str, int] = json.loads((model / "vocab.json").read_text(encoding="utf-8"))["vocab"]
    ids = [vocabulary[phoneme] for phoneme in QUESTION_PHONEMES]
    styles = np.fromfile(voices / f"{QUESTION_VOICE}.bin", np.float32).reshape(-1, 256)
    session = onnxruntime.InferenceSession(str(model / "model.onnx"), providers=["CPUExecutionProvider"])
    tokens, style, speed = (given.name for given in session.get_inputs())
    (sound, *_) = session.run(
        None,
        {
            tokens: np.array([[0, *ids, 0]], np.int64),
            style: styles[min(len(ids), len(styles)) - 1][None],
            speed: np.ones(1, np.float32),
        },
    )
    _write(folder / "question.wav", np.asarray(sound, np.float32).reshape(-1), KOKORO_RATE_HZ)


def _read(path: Path) -> tuple[NDArray[np.float32], int]:
    """Mono float32 in -1..1 and its rate. A file without a header is 16 kHz PCM16."""
    if path.suffix == ".raw":
        frames, rate_hz = path.read_bytes(), SAMPLE_RATE_HZ
    else:
        with wave.open(str(path), "rb") as file:
            if (file.getnchannels(), file.getsampwidth()) != (1, 2):
                raise AssetError(
                    f"{path}: {file.getnchannels()} channels of {file.getsampwidth()} bytes, expected mono PCM16"
                )
            frames, rate_hz = file.readframes(file.getnframes()), file.getframerate()
    return np.frombuffer(frames, "<i2").astype(np.float32) / np.float32(32_768), rate_hz


def _write(path: Path, sound: NDArray[np.float32], rate_hz: int) -> None:
    import soxr

    if rate_hz != SAMPLE_RATE_HZ:
        sound = soxr.resample(sound, rate_hz, SAMPLE_RATE_HZ)
    pcm = (np.clip(sound, -1, 1) * 32_767).round().astype("<i2")
    path.write_bytes(wav(pcm.tobytes(), SAMPLE_RATE_HZ))
