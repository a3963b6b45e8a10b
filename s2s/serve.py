"""`serve`: the Realtime server, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import ray

from s2s.access import is_loopback
from s2s.config import Config, ConfigError
from s2s.gateway import start_gateway
from s2s.serving import ServeOptions
from s2s.system import running
from s2s.timeline_view import timeline_line


def run(config: Config, args: argparse.Namespace) -> int:
    """Serve; 0 after a clean end."""
    options = serve_options(config)
    with running(config) as system:
        gateway = start_gateway(config, system.supervisor)
        try:
            address = ray.get(gateway.serve.remote(options))
        except ray.exceptions.RayTaskError as error:
            print(f"error: {error.cause}", file=sys.stderr)
            return 1
        _tell(address, system.startup_s)
        return _until_told(gateway, config.server.drain_s, config.server.timeline)


def serve_options(config: Config) -> ServeOptions:
    """Raises `ConfigError` where the server would be open to everybody, or a file can't be read."""
    server = config.server
    keys = tuple(filter(None, [server.api_key, *_keys_in(server.api_key_file)]))
    if not keys and not is_loopback(server.host):
        raise ConfigError(
            f"--host {server.host} can be reached from other machines, so an API key is required: give --api_key, "
            "S2S_API_KEY or --api_key_file, or listen on 127.0.0.1."
        )
    if bool(server.tls_cert) != bool(server.tls_key):
        raise ConfigError("TLS needs both --tls_cert and --tls_key.")
    for flag, name in (("tls_cert", server.tls_cert), ("tls_key", server.tls_key)):
        if name and not Path(name).is_file():
            raise ConfigError(f"--{flag} {name}: no such file.")
    return ServeOptions(
        host=server.host,
        port=server.port,
        api_keys=keys,
        allow_origins=tuple(server.allow_origin),
        tls_cert=server.tls_cert,
        tls_key=server.tls_key,
        sample=_sample(),
    )


def _keys_in(path: str | None) -> list[str]:
    if path is None:
        return []
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except OSError as error:
        raise ConfigError(f"--api_key_file {path}: cannot be read ({error.strerror}).") from None
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _sample() -> bytes:
    from actors.assets import question

    return question().read_bytes()


def _tell(address: str, startup_s: float) -> None:
    print(f"ready after {startup_s:.1f} s")
    print(f"  talk:      {address}/")
    print(f"  Realtime:  {address.replace('http', 'ws', 1)}/v1/realtime")
    print("  Ctrl-C ends it.", flush=True)


def _until_told(gateway: Any, drain_s: float, timeline: bool) -> int:
    """Serve until Ctrl-C or SIGTERM, then let running answers finish; another Ctrl-C does not wait for them."""
    try:
        _watch(gateway, timeline)
    except KeyboardInterrupt:
        print(f"ending: running answers have {drain_s:g} s to finish", file=sys.stderr, flush=True)
    except ray.exceptions.RayActorError as error:
        print(f"error: the gateway died: {error}", file=sys.stderr)
        return 1
    try:
        ray.get(gateway.stop.remote(drain_s), timeout=drain_s + 10)
    except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError) as error:
        print(f"error: the gateway did not end cleanly: {error}", file=sys.stderr)
        return 1
    return 0


def _watch(gateway: Any, timeline: bool) -> None:
    """Return when the gateway has stopped; until then show its turns, where that is wanted."""
    stopped = gateway.stopped.remote()
    while timeline:
        turns = gateway.next_turns.remote()
        if stopped in ray.wait([stopped, turns])[0]:
            break
        for session, turn in ray.get(turns):
            print(timeline_line(session, turn), flush=True)
    ray.get(stopped)
