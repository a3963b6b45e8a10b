"""The Ray actor at the edge: it owns sessions, and for a server the sockets, and drives them.

`ask` talks to it by the core's own events, other clients by WebSocket and HTTP; all are the same sessions.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import ray

from actors.queue.core import Figures, QueueOptions
from actors.queue.link import Replica, StageLink
from actors.registry import NONE, find
from actors.remote import RemoteOptions
from orchestration.session.config import Limits, Pace, SessionDefaults, Transcription
from orchestration.session.events import ClientEvent, ServerEvent
from orchestration.session.timeline import KEPT_TURNS, TurnRecord
from s2s.access import Access
from s2s.asks import backend_options, unloaded
from s2s.config import Config
from s2s.session_driver import SessionDriver
from s2s.sessions import Sessions

if TYPE_CHECKING:
    from s2s.serving import HttpServer, ServeOptions

log = logging.getLogger(__name__)

TURNS_POLL_S = 0.3
CONCURRENT_CALLS = 1000
"""Calls to the actor that may be open at once: each waiting client of `next_events` holds one."""
LLM_SILENCE_S = 90.0
"""How long the LLM may give no sign: a function call shows nothing until it is complete."""
LLM_AFFINITY_S = 0.05
"""How long an answer waits for the replica that knows its prompt's beginning: about what reading it anew costs."""


@dataclass(frozen=True)
class GatewayOptions:
    """What a gateway is started with."""

    stages: tuple[str, ...]
    """The stages that are placed: vad, stt, llm, tts, and turn where it is used."""
    defaults: SessionDefaults = field(default_factory=SessionDefaults)
    max_sessions: int = 64
    models: dict[str, str] = field(default_factory=dict)
    """Names for `/v1/models`, each with its stage."""
    queues: dict[str, QueueOptions] = field(default_factory=dict)
    """How items of a stage are treated, where not as usual."""


@dataclass
class _Inbox:
    """A session whose client calls this actor: what it has not fetched yet."""

    driver: SessionDriver
    events: deque[ServerEvent] = field(default_factory=deque)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    over: bool = False


class Gateway:
    """See the module; an async actor, so everything here runs on one event loop."""

    def __init__(self, name: str, options: GatewayOptions, supervisor: Any) -> None:
        self._name = name
        self._options = options
        self._supervisor = supervisor
        self._links: dict[str, StageLink] = {}
        self._inboxes: dict[str, _Inbox] = {}
        self._ready: dict[str, asyncio.Event] = {}
        self._pools: dict[str, int] = {}
        self._http: HttpServer | None = None
        self._stopped = asyncio.Event()
        self._over: deque[tuple[str, TurnRecord]] = deque(maxlen=KEPT_TURNS)
        self._sessions = Sessions(self._links, options.defaults, options.max_sessions)
        self._sessions.turn_over = lambda session, turn: self._over.append((session, turn))

    async def start(self) -> None:
        """Make the links; the supervisor then pushes the pools."""
        me = ray.get_runtime_context().current_actor
        for stage in self._options.stages:
            self._ready[stage] = asyncio.Event()
            self._pools[stage] = 0
            self._links[stage] = StageLink(
                stage,
                self._name,
                deliver=self._sessions.deliver,
                sink=me,
                report_dead=self._report_dead,
                options=self._options.queues.get(stage),
            )

    async def pool(self, stage: str, version: int, replicas: list[Replica]) -> None:
        """The supervisor's word on which replicas a stage has now."""
        if stage not in self._links:
            return
        self._links[stage].set_pool(version, replicas)
        self._pools[stage] = len(replicas)
        if replicas:
            self._ready[stage].set()

    async def ready(self) -> None:
        """Return when every stage has had a replica."""
        for event in self._ready.values():
            await event.wait()

    async def results(self, stage: str, batch: bytes) -> None:
        """Results that a replica pushes."""
        self._links[stage].results(batch)

    def _report_dead(self, replica: str, reason: str) -> None:
        self._supervisor.report_dead.remote(replica, reason)

    async def open_session(self, defaults: SessionDefaults | None = None) -> str:
        """A session for a client that calls this actor; its id."""
        inbox: _Inbox

        def send(event: ServerEvent) -> None:
            inbox.events.append(event)
            inbox.changed.set()

        def closed(_: object) -> None:
            inbox.over = True
            inbox.changed.set()

        driver = self._sessions.open(send, closed, defaults)
        inbox = self._inboxes[driver.session.id] = _Inbox(driver)
        driver.start()
        return driver.session.id

    async def send_events(self, session: str, events: Sequence[ClientEvent]) -> None:
        """Give the session its client's events, in this order."""
        driver = self._inboxes[session].driver
        for event in events:
            driver.receive(event)

    async def next_events(self, session: str) -> list[ServerEvent]:
        """The events since the last call, waiting for one; empty when the session is over."""
        inbox = self._inboxes[session]
        while not inbox.events and not inbox.over:
            inbox.changed.clear()
            await inbox.changed.wait()
        events = list(inbox.events)
        inbox.events.clear()
        return events

    async def turns(self, session: str) -> list[TurnRecord]:
        """The timeline of each turn so far."""
        return list(self._inboxes[session].driver.session.timeline.turns)

    async def next_turns(self) -> list[tuple[str, TurnRecord]]:
        """Session and record of the turns that are over since the last call, waiting for one."""
        while not self._over:
            await asyncio.sleep(TURNS_POLL_S)
            self._sessions.look_for_turns()
        over = list(self._over)
        self._over.clear()
        return over

    async def close_session(self, session: str) -> None:
        inbox = self._inboxes.pop(session)
        self._sessions.close(inbox.driver)
        inbox.over = True
        inbox.changed.set()

    async def figures(self) -> dict[str, Figures]:
        """The queue of each stage, seen from here."""
        return {stage: link.figures() for stage, link in self._links.items()}

    async def serve(self, options: ServeOptions) -> str:
        """Listen for clients; the address of the page.  Raises `ServeError`."""
        from s2s.realtime.http import Server, make_app
        from s2s.serving import HttpServer

        server = Server(
            sessions=self._sessions,
            access=Access(options.api_keys, options.allow_origins),
            figures=lambda: {stage: link.figures() for stage, link in self._links.items()},
            pools=lambda: dict(self._pools),
            models=self._options.models,
            sample=options.sample,
        )
        self._http = HttpServer(make_app(server), options)
        await self._http.start()
        return self._http.address

    async def stopped(self) -> None:
        """Return after `stop`; fails when this process dies."""
        await self._stopped.wait()

    async def stop(self, drain_s: float = 0.0) -> None:
        """Drain for at most `drain_s`, then end every session."""
        await self._sessions.drain(drain_s)
        for driver in list(self._sessions.drivers.values()):
            self._sessions.close(driver)
        if self._http is not None:
            await self._http.stop()
        for link in self._links.values():
            link.stop()
        self._stopped.set()


def gateway_options(config: Config) -> GatewayOptions:
    """What the configuration says of sessions and queues."""
    session, server = config.session, config.server
    defaults = SessionDefaults(
        model=config.llm.backend,
        instructions=session.instructions,
        voice=_default_voice(config),
        session={"audio": {"input": {"turn_detection": _turn_detection(session.turn_detection)}}},
        transcription=Transcription(model="default") if server.transcribe else None,
        language=None if session.language == "auto" else session.language,
        names_language=session.enable_lang_prompt,
        language_voices=session.language_voices,
        voice_languages=unloaded(config, "tts").capabilities.languages,
        hears="audio" if config.stt.backend == NONE else "transcript",
        speculation=session.speculation,  # type: ignore[arg-type]
        resume_answers=session.resume_answers,
        partial_share=session.partial_share,
        pace=Pace(barge_in_ms=session.barge_in_ms),
        allow_16k=server.allow_16k,
        limits=Limits(session_s=server.max_session_s or None, idle_s=server.max_idle_s or None),
    )
    models = {
        str(config.stage(stage).options.get("model_name") or config.stage(stage).backend): stage
        for stage in config.stages
    }
    queues = {"llm": QueueOptions(affinity_wait_s=LLM_AFFINITY_S, stage_timeout_s=LLM_SILENCE_S)}
    for stage in config.stages:
        options = backend_options(config, stage)
        if isinstance(options, RemoteOptions):
            usual = queues.get(stage, QueueOptions())
            patience_s = max(usual.stage_timeout_s, options.patience_s)
            queues[stage] = replace(usual, stage_timeout_s=patience_s)
    return GatewayOptions(config.stages, defaults, server.max_sessions, models, queues)


def _turn_detection(name: str) -> dict[str, str] | None:
    return None if name == "none" else {"type": name}


def _default_voice(config: Config) -> str:
    """The voice that TTS uses when none is asked for, so that sessions can say its name."""
    settings = config.tts
    default = getattr(find("tts", settings.backend).options_class()(), "voice", None)
    return str(settings.options.get("voice") or default or "default")


def start_gateway(config: Config, supervisor: Any, name: str = "gateway-0") -> Any:
    """The handle of a new gateway actor that the supervisor knows and whose every stage is ready."""
    actor = ray.remote(Gateway).options(num_cpus=0, max_restarts=0, max_concurrency=CONCURRENT_CALLS)
    gateway = actor.remote(name, gateway_options(config), supervisor)
    ray.get(gateway.start.remote())
    ray.get(supervisor.add_gateway.remote(gateway))
    ray.get(gateway.ready.remote())
    return gateway
