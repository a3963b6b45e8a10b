"""`talk`: a conversation by microphone and speakers, or files, with any Realtime server."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from s2s.audio import AudioFileError
from s2s.client.connection import NoConnection, UrlError, address
from s2s.client.devices import DeviceError, DeviceLost, device_table
from s2s.client.program import Program, TalkOptions
from s2s.client.tools import ToolError
from s2s.config import Config

FAILED, MISTAKE = 1, 2


def run(config: Config, args: argparse.Namespace) -> int:
    """Talk to the server at `--url`; the exit code."""
    key = args.api_key or config.server.api_key or os.environ.get("OPENAI_API_KEY")
    return in_words(lambda: _talk(args, key))


def _talk(args: argparse.Namespace, key: str | None) -> int:
    if args.list_devices:
        print(device_table())
        return 0
    address(args.url, args.model)  # a mistake in it is found before the devices are asked for
    options = talk_options(args, model=args.model, instructions=args.instructions)
    return Program(options).talk(args.url, key)


def talk_options(
    args: argparse.Namespace, model: str = "local", instructions: str | None = None
) -> TalkOptions:
    """The client's options, of `talk` or `local`."""
    return TalkOptions(
        model=model,
        voice=args.voice,
        instructions=instructions,
        input_device=args.input_device,
        output_device=args.output_device,
        push_to_talk=args.push_to_talk,
        block_microphone=args.block_mic_during_playback,
        tools=args.tools,
        wav=tuple(Path(each) for each in args.wav or ()),
        save=Path(args.save) if args.save else None,
    )


def in_words(work: Callable[[], int]) -> int:
    """The exit code of `work`; what the client raises is told to the person."""
    try:
        return work()
    except NoConnection as error:
        print(f"error: {error}", file=sys.stderr)
        return error.code
    except DeviceLost as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    except (UrlError, DeviceError, ToolError, AudioFileError) as error:
        print(f"error: {error}", file=sys.stderr)
        return MISTAKE
