"""`python -m s2s.run [command] [flags]`: one door for everything.

Nothing heavy is imported until a command needs it.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from s2s.config import Config, ConfigError, canonical, settings

Flags = list[tuple[str, str | None]]
BENCHES = ("queue", "wire", "faults", "startup", "turns", "stt")


def entry() -> None:
    """The `s2s` command."""
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:  # whoever read our output, such as `head`, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def main(argv: Sequence[str]) -> int:
    """Run one command; the exit code.  2 is a mistake in what was asked, 1 a failure, 130 Ctrl-C."""
    if argv[:1] in (["-h"], ["--help"]):
        print(_overview())
        return 0
    named = bool(argv) and not argv[0].startswith("-")
    name = argv[0] if named else "serve"
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        print(f"error: {name!r} is not a command.{hint} Known: {', '.join(COMMANDS)}.", file=sys.stderr)
        return 2
    command = COMMANDS[name]
    parser = argparse.ArgumentParser(
        prog=f"python -m s2s.run {name}",
        description=command.summary,
        epilog=_settings_help() if command.settings else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.arguments(parser)
    own, flags = split(argv[1:] if named else argv, set(parser._option_string_actions))
    if flags and not command.settings:
        near = difflib.get_close_matches(f"--{flags[0][0]}", parser._option_string_actions, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        print(
            f"error: {name} has no --{flags[0][0]}.{hint} `{name} --help` shows what it has.", file=sys.stderr
        )
        return 2
    return _carry_out(command, flags, parser.parse_args(own))


def _carry_out(command: Command, flags: Flags, args: argparse.Namespace) -> int:
    from actors.assets import AssetError
    from actors.registry import MissingLibrary
    from orchestration.cluster import RayStartError
    from orchestration.placement import PlacementError
    from orchestration.supervisor import StageFailedError
    from s2s.layers import load

    try:
        return command.run(load(flags, os.environ), args)
    except KeyboardInterrupt:
        print("interrupted: everything was stopped", file=sys.stderr)
        return 130
    except (ConfigError, PlacementError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (RayStartError, StageFailedError, AssetError, MissingLibrary) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def split(argv: Sequence[str], own: Collection[str]) -> tuple[list[str], Flags]:
    """Part a command's `own` options (and what is no flag at all) from configuration flags.

    `-` and `_` are the same in a flag, and a flag without a value is a switch.
    """
    kept: list[str] = []
    flags: Flags = []
    known = settings()
    position = 0
    while position < len(argv):
        word = argv[position]
        position += 1
        if not word.startswith("--") or word == "--":
            kept.append(word)
            continue
        name, equals, value = word.removeprefix("--").partition("=")
        spelled = "--" + name.replace("_", "-")
        if spelled in own:
            kept.append(spelled + equals + value)
            continue
        switch = getattr(known.get(canonical(name)), "type", None) is bool or "optimal_settings" in canonical(
            name
        )
        follows = position < len(argv) and not argv[position].startswith("--")
        if equals:
            flags.append((name, value))
        elif switch or not follows:
            flags.append((name, None))
        else:
            flags.append((name, argv[position]))
            position += 1
    return kept, flags


def _overview() -> str:
    lines = [
        "usage: python -m s2s.run [command] [flags]",
        "",
        "Speech to speech on Ray actors.",
        "",
        "commands:",
    ]
    lines += [f"  {name:8} {command.summary}" for name, command in COMMANDS.items()]
    lines += ["", "Flags alone mean `serve`.  `COMMAND --help` shows a command's own arguments.", ""]
    return "\n".join(lines) + _settings_help()


def _settings_help() -> str:
    """Every setting once; those of the five stages together."""
    lines = ["settings of every command (also in --config FILE, and as S2S_NAME in the environment):"]
    lines.append("  --config FILE".ljust(28) + "a YAML file with settings by these names")
    lines.append("  --mac-optimal-settings".ljust(28) + "the mac profile (also --local_mac_optimal_settings)")
    for name, setting in settings().items():
        stage, _, leaf = setting.path.partition(".")
        if stage in ("vad", "turn", "llm", "tts"):
            continue
        shown = f"  --<stage>_{leaf}" if stage == "stt" else f"  --{name}"
        lines.append(shown.ljust(28) + setting.help)
    lines.append(
        "  --<stage>_<option>".ljust(28) + "an option of the stage's backend, such as --stt_model_name;"
    )
    lines.append("".ljust(28) + "`config --options` lists them")
    lines.append("  <stage>: vad, turn, stt, llm, tts.  `-` and `_` are the same.")
    return "\n".join(lines)


@dataclass(frozen=True)
class Command:
    """One command: `module.run(config, args) -> int` does it."""

    summary: str
    module: str
    arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    settings: bool = True
    """Whether it takes the settings of the system."""

    def run(self, config: Config, args: argparse.Namespace) -> int:
        code: int = importlib.import_module(self.module).run(config, args)
        return code


def _talk(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--url", default="ws://127.0.0.1:8765/v1/realtime", help="the Realtime server (default: %(default)s)"
    )
    parser.add_argument("--model", default="local", help="the model asked for (default: %(default)s)")
    parser.add_argument("--api-key", help="the server's key (also S2S_API_KEY or OPENAI_API_KEY)")
    parser.add_argument("--instructions", help="system prompt (default: the server's)")
    _client(parser)


def _client(parser: argparse.ArgumentParser) -> None:
    """What `talk` and `local` have in common."""
    add = parser.add_argument
    add("--voice", help="the voice that answers (default: the server's)")
    add("--list-devices", action="store_true", help="print microphones and speakers, and end")
    add("--input-device", metavar="NAME", help="the microphone, by its number or a part of its name")
    add("--output-device", metavar="NAME", help="the speakers, by their number or a part of their name")
    add("--wav", nargs="+", metavar="FILE", help="recordings in place of the microphone")
    add("--save", metavar="FILE", help="a wav file in place of the speakers")
    add("--push-to-talk", action="store_true", help="space begins and ends what you say")
    add(
        "--block-mic-during-playback",
        action="store_true",
        help="the server hears silence while it speaks: where the microphone hears the speakers",
    )
    add("--tools", metavar="MODULE", help="a Python module or file; its functions become tools of the model")


def _ask(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input", nargs="+", metavar="FILE", help="recordings, one turn each (default: a packaged question)"
    )
    parser.add_argument("--output-dir", default="out", metavar="DIR", help="where the answers go")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.add_argument("--explain", action="store_true", help="why each replica is where it is")


def _bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", choices=BENCHES)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--check", action="store_true", help="exit 1 where a bound fails")
    parser.add_argument(
        "--stage", choices=("stt", "llm", "tts"), default="tts", help="faults: whose process is killed"
    )
    parser.add_argument("--kills", type=int, default=10, help="faults: how often")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--url", help="turns: a server that runs already (default: one is started)")
    parser.add_argument("--quick", action="store_true", help="turns, stt: quicker, and rougher figures")


def _pull(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="ASSET", help="default: what the configuration needs")
    parser.add_argument("--list", action="store_true", help="what there is, what is here, sizes and licences")


def _config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--print", action="store_true", help="the effective tree (default)")
    parser.add_argument("--options", action="store_true", help="options of the chosen backends")


COMMANDS = {
    "serve": Command("the Realtime server", "s2s.serve"),
    "talk": Command(
        "talk to a Realtime server by microphone and speakers", "s2s.talk", _talk, settings=False
    ),
    "local": Command("the server and a client of it in one", "s2s.local", _client),
    "ask": Command("recordings in, spoken answers out", "s2s.ask", _ask),
    "plan": Command("what would run where; nothing is started", "s2s.plan", _plan),
    "bench": Command("measure queue, wire, faults, startup, turns or stt", "s2s.bench.run", _bench),
    "doctor": Command("what is on this machine", "s2s.doctor"),
    "pull": Command("fetch model weights and recordings", "s2s.pull", _pull),
    "config": Command("the effective configuration and where it came from", "s2s.config_view", _config),
}

if __name__ == "__main__":
    entry()
