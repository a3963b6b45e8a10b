"""`bench turns`: how long a person waits for an answer, and how soon it stops for them.

A client over WebSocket, paced in real time; recordings whose end of speech is measured.  Every figure is a quantile of
raw samples, which stay in the JSON.  Without `--url` a server is started, and the same turns are also measured with
speculation off.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import random
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from orchestration.session.config import Pace, ServerVad
from orchestration.session.turns import endpointing
from orchestration.session.turns.base import Resumed, Started
from orchestration.session.vad_feed import Frame
from s2s.audio import Pcm16
from s2s.bench import bounds
from s2s.bench.hearing import Ear
from s2s.bench.live import Client, ServerUnfit, fetch, quantile
from s2s.bench.paused import Paused, between_sentences, inside_sentence, paused
from s2s.bench.recordings import (
    LONGEST_OWN_PAUSE_MS,
    RATE_HZ,
    Measure,
    Recording,
    cough,
    packaged,
    steady,
)
from s2s.bench.tell import tell
from s2s.bench.turn_trials import (
    Interruption,
    Storyteller,
    TurnMoments,
    detection,
    false_starts,
    pauses,
    voice_to_voice,
)
from s2s.config import Config

PAUSES_MS = (300, 600, 900)
SILENCE_MS = ServerVad().silence_duration_ms
INTERRUPTIONS = (
    "Stop, please.",
    "Wait, I have a question.",
    "No, that is not what I meant.",
    "Can you say that again?",
    "Hold on a second.",
    "Tell me something else.",
)
BACKCHANNELS = ("Mm-hmm.", "Yeah.", "Uh-huh.", "Okay.", "Right.", "I see.", "Hm.", "Oh.")
VOICES = ("am_adam", "bf_emma", "am_michael", "af_bella")
BARGE_IN_MS = (200, 250, 300, 350, 400, 450, 500, 600, 700)
NOISE_S = 60.0


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    turns: int
    paused: int
    interruptions: int
    backchannels: int
    rounds: int


QUICK = Size(turns=3, paused=2, interruptions=3, backchannels=4, rounds=1)
WHOLE = Size(turns=12, paused=10, interruptions=6, backchannels=8, rounds=2)


@dataclass
class Server:
    address: str
    without_speculation: str | None
    """The same replicas behind a gateway that begins nothing early."""
    api_key: str | None


def run(config: Config, args: argparse.Namespace) -> dict[str, Any]:
    """Measure the server at `args.url`, or the configured system; ends the program where that cannot be measured."""
    size = QUICK if args.quick else WHOLE
    try:
        if args.url:
            address = args.url.rstrip("/").removesuffix("/v1/realtime").replace("ws", "http", 1)
            return asyncio.run(_measure(Server(address, None, config.server.api_key), size, args.seed))
        with _own(config) as server:
            return asyncio.run(_measure(server, size, args.seed))
    except (ServerUnfit, OSError) as error:
        raise SystemExit(f"bench turns: {error}") from error


@contextmanager
def _own(config: Config) -> Any:
    """The configured system with two gateways, the second without speculation."""
    import ray

    from s2s.gateway import start_gateway
    from s2s.serving import ServeOptions
    from s2s.system import running

    key = config.server.api_key
    options = ServeOptions(port=0, api_keys=(key,) if key else ())
    off = replace(config, session=replace(config.session, speculation="off"))
    with running(config) as system:
        addresses = []
        for name, each in (("gateway-0", config), ("gateway-1", off)):
            gateway = start_gateway(each, system.supervisor, name)
            addresses.append(ray.get(gateway.serve.remote(options)))
        yield Server(addresses[0], addresses[1], key)


async def _measure(server: Server, size: Size, seed: int) -> dict[str, Any]:
    load_before = os.getloadavg()[0]
    measure = Measure()
    recordings = packaged(measure)
    rng = random.Random(seed)
    timed = steady(recordings, LONGEST_OWN_PAUSE_MS)
    rng.shuffle(timed)
    timed = (timed * 2)[: size.turns]
    with_pauses = _with_pauses(measure, recordings, size.paused)
    raw: dict[str, Any] = {}
    figures: dict[str, float] = {}
    late = 0
    for name, kind, address in (
        ("server_vad", "server_vad", server.address),
        ("semantic_vad", "semantic_vad", server.address),
        ("server_vad_speculation_off", "server_vad", server.without_speculation),
        ("semantic_vad_speculation_off", "semantic_vad", server.without_speculation),
    ):
        if address is None or (size is QUICK and name == "semantic_vad_speculation_off"):
            continue
        tell("turns", f"{name}: {len(timed)} turns")
        async with Client(address, server.api_key) as client:
            await client.configure(**detection(kind))
            turns = await voice_to_voice(client, timed)
            late += client.late_frames
        raw[name] = [asdict(turn) for turn in turns]
        figures |= _turn_figures(name, turns, SILENCE_MS if kind == "server_vad" else None)
        if address != server.address:
            continue
        for pause, said in with_pauses.items():
            tell("turns", f"{name}: {pause}")
            async with Client(address, server.api_key) as client:
                await client.configure(**detection(kind, create_response=False))
                trials = await pauses(client, said)
                late += client.late_frames
            raw[f"{name}_{pause}"] = [asdict(trial) for trial in trials]
            figures[f"{name}_{pause}_split_share"] = _share(trial.splits > 0 for trial in trials)
    tell("turns", f"{NOISE_S:.0f} s of noise")
    noise_rng = np.random.default_rng(seed)
    raw["noise"] = await false_starts(server.address, server.api_key, timed[0], NOISE_S, noise_rng)
    figures["noise_turns"] = sum(raw["noise"].values())
    tell("turns", "speech over answers")
    problems: list[str] = []
    try:
        late += await _barge_ins(server, measure, size, seed, raw, figures)
    except ServerUnfit as error:  # the rest was measured, and is not lost for it
        problems.append(f"speech over answers could not be measured: {error}")
    figures["late_frames"] = late
    return {
        "bench": "turns",
        "machine": machine(load_before),
        "figures": figures,
        "samples": raw,
        "broken": problems
        + bounds.broken(figures, {name: most for name, most in bounds.TURNS.items() if name in figures}),
    }


def _with_pauses(measure: Measure, recordings: Sequence[Recording], most: int) -> dict[str, list[Paused]]:
    """Recordings by the pause in them: of each length `pause_<ms>` between two sentences, where a turn may well end,
    and `pause_<ms>_inside` one, where it does not."""
    ear = Ear()
    found: dict[str, list[Paused]] = {}
    for kind, find in (("", between_sentences), ("_inside", inside_sentence)):
        made = list(islice(paused(measure, ear, find, recordings, PAUSES_MS), most))
        found |= {f"pause_{pause_ms}{kind}": [each[pause_ms] for each in made] for pause_ms in PAUSES_MS}
    return found


async def _barge_ins(
    server: Server, measure: Measure, size: Size, seed: int, raw: dict[str, Any], figures: dict[str, float]
) -> int:
    rng = np.random.default_rng(seed)
    speech = await asyncio.to_thread(_spoken, server, measure, INTERRUPTIONS[: size.interruptions])
    nods = await asyncio.to_thread(_spoken, server, measure, BACKCHANNELS[: size.backchannels])
    nods += [Recording("cough", pcm := cough(rng), 0, len(pcm))]
    async with Client(server.address, server.api_key) as client:
        await client.configure(**detection("server_vad", create_response=False))
        teller = Storyteller(client, rng)
        cut = [await teller.interrupted(each) for _ in range(size.rounds) for each in speech]
        nodded = [await teller.interrupted(each) for _ in range(size.rounds) for each in nods]
        late = client.late_frames
    raw["interruptions"] = [asdict(each) for each in cut]
    raw["backchannels"] = [asdict(each) for each in nodded]
    raw["barge_in_trade_off"] = trade_off(measure, speech, nods)
    figures |= _barge_figures(cut, nodded)
    return late


def _spoken(server: Server, measure: Measure, texts: Iterable[str]) -> list[Recording]:
    """`texts` spoken by the server's own TTS, in voices that it does not answer with."""
    headers = {"Authorization": f"Bearer {server.api_key}"} if server.api_key else {}
    found = []
    for number, text in enumerate(texts):
        body = {"input": text, "voice": VOICES[number % len(VOICES)], "response_format": "pcm"}
        pcm = np.frombuffer(fetch(f"{server.address}/v1/audio/speech", headers, body), "<i2")
        try:
            found.append(measure.recording(text, pcm))
        except ValueError:  # VAD takes it for no speech: so will the server
            found.append(Recording(text, pcm, 0, len(pcm)))
    return found


def _turn_figures(name: str, turns: Sequence[TurnMoments], endpointing_ms: int | None) -> dict[str, float]:
    """`endpointing_ms`: the delay that was asked for; None: that which the server's record shows."""
    audible = [turn.audible_ms for turn in turns]
    beyond = [turn.audible_ms - (endpointing_ms or turn.server["endpoint"]) for turn in turns]
    figures = {
        **_quantiles(f"{name}_audible", audible),
        **_quantiles(f"{name}_first_delta", [turn.first_delta_ms for turn in turns]),
        **_quantiles(f"{name}_beyond_endpointing", beyond),
        **_quantiles(f"{name}_speech_stopped", [turn.stopped_ms for turn in turns]),
        **_quantiles(f"{name}_speech_started", [turn.started_ms for turn in turns]),
        f"{name}_first_turn_audible_ms": audible[0],
        f"{name}_turns_split": sum(turn.turns > 1 for turn in turns),
    }
    for step in dict.fromkeys(step for turn in turns for step in turn.server):
        figures[f"{name}_{step}_p50_ms"] = quantile([t.server[step] for t in turns if step in t.server], 0.5)
    return figures


def _barge_figures(cut: Sequence[Interruption], nodded: Sequence[Interruption]) -> dict[str, float]:
    def known(take: Callable[[Interruption], float | None]) -> list[float]:
        return [value for each in cut if (value := take(each)) is not None]

    return {
        **_quantiles("barge_in_speech_started", known(lambda each: each.started_ms)),
        **_quantiles("barge_in_last_audio", known(lambda each: each.last_audio_ms)),
        "barge_in_missed_share": _share(each.started_ms is None for each in cut),
        "backchannel_cut_share": _share(each.started_ms is not None for each in nodded),
    }


def trade_off(
    measure: Measure, speech: Sequence[Recording], nods: Sequence[Recording]
) -> list[dict[str, float]]:
    """For each bound of `barge_in_ms`: how soon speech alone, without its words, confirms an interruption, and the
    share of backchannels that it would take for one.  Computed from the VAD's frames of the very recordings."""
    curve = []
    for bound_ms in BARGE_IN_MS:
        soon = [confirmed_ms(measure, each.pcm, bound_ms) for each in speech]
        wrong = [confirmed_ms(measure, each.pcm, bound_ms) for each in nods]
        delays = [at - 1000 * each.onset_s for at, each in zip(soon, speech, strict=True) if at is not None]
        curve.append(
            {
                "barge_in_ms": float(bound_ms),
                "interruptions_confirmed_share": _share(at is not None for at in soon),
                "onset_to_confirmed_p50_ms": quantile(delays, 0.5),
                "onset_to_confirmed_p95_ms": quantile(delays, 0.95),
                "backchannels_confirmed_share": _share(at is not None for at in wrong),
            }
        )
    return curve


def confirmed_ms(measure: Measure, pcm: Pcm16, barge_in_ms: int) -> float | None:
    """When speech in a row has lasted `barge_in_ms`, in ms of `pcm`; None: it never does."""
    strategy = endpointing(ServerVad(), Pace())
    silence = np.zeros(RATE_HZ, np.int16)
    began: int | None = None
    for number, probability in enumerate(measure.probabilities(np.concatenate([pcm, silence]))):
        frame = Frame(number * 512, probability)
        for signal in strategy.frame(frame):
            began = signal.at if isinstance(signal, (Started, Resumed)) else None
        if began is not None and probability >= 0.5 and (frame.end - began) / 16 >= barge_in_ms:
            return frame.end / 16
    return None


def _quantiles(name: str, values: Sequence[float]) -> dict[str, float]:
    return {f"{name}_p{share}_ms": quantile(values, share / 100) for share in (50, 95, 99)}


def _share(flags: Iterable[bool]) -> float:
    listed = list(flags)
    return sum(listed) / max(1, len(listed))


def machine(load_before: float) -> dict[str, Any]:
    """Where this was measured."""
    info = Path("/proc/cpuinfo")
    names = [line.split(":")[1].strip() for line in _lines(info) if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("ray", "torch", "transformers", "onnxruntime")},
        "yardstick_ms": round(yardstick_ms(), 1),
        "load_before": round(load_before, 2),
        "load_after": round(os.getloadavg()[0], 2),
    }


def yardstick_ms() -> float:
    """What a product of two 1024 x 1024 float32 matrices takes here: how fast the machine is at the moment."""
    one = np.ones((1024, 1024), np.float32)
    took = []
    for _ in range(10):
        began = time.perf_counter()
        one @ one
        took.append(time.perf_counter() - began)
    return 1000 * quantile(took, 0.5)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
