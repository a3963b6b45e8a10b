"""Whatever the order of events, results, failures and time: the protocol holds and every response ends once."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from actors.messages import Failed, LlmDone, LlmText, Result
from orchestration.session import events as ev
from orchestration.session.config import Limits, SessionDefaults, StageTimeouts
from orchestration.session.effects import Submit
from orchestration.session.items import FunctionCallOutputItem, InputText, MessageItem
from tests.orchestration.session.protocol import Protocol
from tests.orchestration.session.session_rig import Rig, call

TURN_DETECTION: list[dict[str, Any] | None] = [
    None,
    {"type": "server_vad"},
    {"type": "server_vad", "interrupt_response": False},
    {"type": "server_vad", "create_response": False},
    {"type": "server_vad", "idle_timeout_ms": 5000},
    {"type": "semantic_vad", "eagerness": "high"},
]
REPLIES: list[str | list[Result]] = [
    "It is noon.",
    "Yes. And then, if you like, I will tell you more about it. Much more.",
    "",
    "<think>hm</think>Well.",
    [LlmText("One moment. "), call("clock"), call("clock"), LlmDone("tool_calls")],
    [LlmText("This is too lo"), LlmDone("length")],
]


class AnyOrder(RuleBasedStateMachine):
    @initialize(
        speculation=st.sampled_from(["off", "stt", "llm", "tts"]),
        hears=st.sampled_from(["transcript", "transcript", "audio"]),
        paced=st.booleans(),
    )
    def begin(self, speculation: Any, hears: Any, paced: bool) -> None:
        timeouts = StageTimeouts(9.0, 9.0, 9.0, 9.0, 9.0)
        defaults = SessionDefaults(
            speculation=speculation, hears=hears, paced_output=paced, timeouts=timeouts, limits=Limits(None)
        )
        self.protocol = Protocol()
        self.scripts: dict[int, list[Result]] = {}
        self.stale: list[Submit] = []
        self.over = False
        self.rig = Rig(defaults, auto=(), start=False)
        self.do(self.rig.session.start(self.rig.now))

    def do(self, effects: list[Any]) -> None:
        before = dict(self.rig.open)
        self.rig.do(effects)
        self.stale += [submit for work, submit in before.items() if work not in self.rig.open]
        self.protocol.see(effects)

    def send(self, event: Any) -> None:
        self.do(self.rig.session.receive(event, self.rig.now))

    def item(self, data: Any) -> str:
        known = [*sorted(self.protocol.known_items), "nobody"]
        return str(data.draw(st.sampled_from(known)))

    @rule(ms=st.integers(1, 1500), speech=st.booleans(), live=st.booleans())
    def sound(self, ms: int, speech: bool, live: bool) -> None:
        if live:
            self.time(ms / 1000)
        pcm = (b"\x01\x10" if speech else b"\x00\x00") * (ms * 16)
        self.send(ev.InputAudioBufferAppend(audio=pcm))

    @rule()
    def commit(self) -> None:
        self.send(ev.InputAudioBufferCommit())

    @rule()
    def clear(self) -> None:
        self.send(ev.InputAudioBufferClear())

    @rule(
        modality=st.sampled_from([None, ["text"], ["audio"]]),
        beside=st.booleans(),
        parallel=st.sampled_from([None, False]),
    )
    def create(self, modality: Any, beside: bool, parallel: Any) -> None:
        params = ev.ResponseParams(
            output_modalities=modality,
            conversation="none" if beside else None,
            parallel_tool_calls=parallel,
            input=[MessageItem("user", [InputText("Beside.")])] if beside else None,
        )
        self.send(ev.ResponseCreate(response=params))

    @rule()
    def cancel(self) -> None:
        self.send(ev.ResponseCancel())

    @rule()
    def clear_output(self) -> None:
        self.send(ev.OutputAudioBufferClear())

    @rule(detection=st.sampled_from(TURN_DETECTION), told=st.booleans(), text=st.booleans())
    def update(self, detection: Any, told: bool, text: bool) -> None:
        transcription = {"model": "whisper-1"} if told else None
        tool = {"type": "function", "name": "clock", "parameters": {"type": "object"}}
        self.send(
            ev.SessionUpdate(
                session={
                    "audio": {"input": {"turn_detection": detection, "transcription": transcription}},
                    "output_modalities": ["text"] if text else ["audio"],
                    "tools": [tool],
                }
            )
        )

    @rule(data=st.data())
    def write(self, data: Any) -> None:
        previous = data.draw(st.sampled_from([None, "root", self.item(data)]))
        item = MessageItem("user", [InputText("Hello.")])
        self.send(ev.ConversationItemCreate(item=item, previous_item_id=previous))

    @rule()
    def call_output(self) -> None:
        calls = [e.call_id for e in self.rig.of(ev.FunctionCallArgumentsDone)]
        item = FunctionCallOutputItem(calls[-1] if calls else "none", "noon")
        self.send(ev.ConversationItemCreate(item=item))

    @rule(data=st.data())
    def delete(self, data: Any) -> None:
        self.send(ev.ConversationItemDelete(item_id=self.item(data)))

    @rule(data=st.data())
    def retrieve(self, data: Any) -> None:
        self.send(ev.ConversationItemRetrieve(item_id=self.item(data)))

    @rule(data=st.data(), ms=st.integers(0, 2000))
    def truncate(self, data: Any, ms: int) -> None:
        self.send(ev.ConversationItemTruncate(item_id=self.item(data), content_index=0, audio_end_ms=ms))

    @precondition(lambda self: self.rig.open)
    @rule(data=st.data(), count=st.integers(1, 12))
    def results(self, data: Any, count: int) -> None:
        """A stage brings some of its results."""
        submit = self.rig.open[data.draw(st.sampled_from(sorted(self.rig.open)))]
        if submit.work not in self.scripts:
            if submit.request.stage == "llm":
                self.rig.replies.append(data.draw(st.sampled_from(REPLIES)))
            if submit.request.stage == "stt":
                self.rig.transcripts.append(data.draw(st.sampled_from(["Hello.", "yeah", ""])))
            if submit.request.stage == "turn":
                self.rig.turn_probability = data.draw(st.sampled_from([0.1, 0.9]))
            self.scripts[submit.work] = list(self.rig._script(submit.request))
        script = self.scripts[submit.work]
        for _ in range(min(count, len(script))):
            if submit.work not in self.rig.open:
                return
            result = script.pop(0)
            if not script:
                del self.rig.open[submit.work]
            self.do(self.rig.session.result(submit.work, result, self.rig.now))

    @precondition(lambda self: self.rig.open)
    @rule()
    def all_vad(self) -> None:
        for submit in self.rig.waiting("vad"):
            del self.rig.open[submit.work]
            self.do(self.rig.session.result(submit.work, self.rig._script(submit.request)[0], self.rig.now))

    @precondition(lambda self: self.rig.open)
    @rule(data=st.data())
    def fail(self, data: Any) -> None:
        work = data.draw(st.sampled_from(sorted(self.rig.open)))
        del self.rig.open[work]
        self.protocol.failures_allowed = True
        self.do(self.rig.session.result(work, Failed("it broke"), self.rig.now))

    @precondition(lambda self: self.stale)
    @rule(data=st.data())
    def late_result(self, data: Any) -> None:
        """A result of what was cancelled changes nothing."""
        submit = data.draw(st.sampled_from(self.stale))
        for result in self.rig._script(submit.request):
            assert self.rig.session.result(submit.work, result, self.rig.now) == []

    @rule(seconds=st.sampled_from([0.05, 0.5, 3.0, 8.0]))
    def time(self, seconds: float) -> None:
        until = self.rig.now + seconds
        while (at := self.rig.session.wakeup_at()) is not None and at <= until:
            self.rig.now = max(self.rig.now, at)
            self.protocol.failures_allowed = True  # a stage was too late
            self.do(self.rig.session.tick(self.rig.now))
        self.rig.now = until

    @invariant()
    def a_tick_does_all_that_is_due(self) -> None:
        if hasattr(self, "rig"):
            at = self.rig.session.wakeup_at()
            if at is not None and at <= self.rig.now:
                self.do(self.rig.session.tick(self.rig.now))
                at = self.rig.session.wakeup_at()
            assert at is None or at > self.rig.now

    def teardown(self) -> None:
        if not hasattr(self, "rig"):
            return
        self.send(
            ev.SessionUpdate(session={"audio": {"input": {"turn_detection": None}}})
        )  # no idle timeouts
        self.time(100)
        assert not self.protocol.running, "a response never ended"
        self.do(self.rig.session.disconnect(self.rig.now))
        assert self.protocol.closed
        assert self.rig.session.receive(ev.InputAudioBufferCommit(), self.rig.now) == []


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(
    max_examples=30, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
