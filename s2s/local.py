"""`local`: the server and a client of it in one command."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from dataclasses import replace

import ray

from s2s.client.devices import device_table
from s2s.client.program import Program
from s2s.config import Config
from s2s.gateway import start_gateway
from s2s.serve import serve_options
from s2s.system import running
from s2s.talk import FAILED, in_words, talk_options

END_TIMEOUT_S = 10.0


def run(config: Config, args: argparse.Namespace) -> int:
    """Start everything, talk, end everything; the exit code."""
    return in_words(lambda: _local(config, args))


def _local(config: Config, args: argparse.Namespace) -> int:
    if args.list_devices:
        print(device_table())
        return 0
    program = Program(talk_options(args))  # what is wrong with it is told before anything is started
    if "server.port" not in config.origins:
        config = replace(config, server=replace(config.server, port=0))
    options = serve_options(config)
    with running(config) as system:
        gateway = start_gateway(config, system.supervisor)
        try:
            try:
                address = ray.get(gateway.serve.remote(options))
            except ray.exceptions.RayTaskError as error:
                print(f"error: {error.cause}", file=sys.stderr)
                return FAILED
            print(f"ready after {system.startup_s:.1f} s; the page is at {address}/", flush=True)
            return program.talk(address, next(iter(options.api_keys), None))
        finally:
            # A gateway that died was told of by the lost connection.
            with suppress(ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
                ray.get(gateway.stop.remote(), timeout=END_TIMEOUT_S)
