"""Ctrl-C and SIGTERM while Ray starts and ends, with a Ray that is scripted."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import ray

from orchestration import processes
from orchestration.cluster import RayStartError, ray_running
from orchestration.cluster_settings import RaySettings
from s2s.system import terminating

NUMBERS = [signal.SIGINT, signal.SIGTERM]
Script = Callable[..., None]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Script]:
    """Have Ray do this at its start and at its end."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("S2S_CACHE", str(tmp_path))

    def put(start: Callable[[], None] = lambda: None, end: Callable[[], None] = lambda: None) -> None:
        def init(**options: Any) -> None:
            ray._private.utils.set_sigterm_handler(lambda number, frame: pytest.fail("Ray's own handler"))
            start()

        monkeypatch.setattr(ray, "init", init)
        monkeypatch.setattr(ray, "shutdown", end)

    with terminating():
        yield put


def lose(number: int) -> None:
    """A signal that comes where Python drops what is raised, such as around a fork."""
    with contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(number)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_while_ray_starts_is_not_lost(script: Script, number: int) -> None:
    script(start=lambda: lose(number))
    with pytest.raises(KeyboardInterrupt), ray_running(RaySettings()):
        pytest.fail("it went on")


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_while_ray_ends_waits_until_it_has(
    script: Script, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    monkeypatch.setattr(processes, "end", ended.append)
    script(end=lambda: signal.raise_signal(number))
    with pytest.raises(KeyboardInterrupt), ray_running(RaySettings()):
        pass
    assert len(ended) == 1


def test_a_start_that_fails_after_ctrl_c_is_not_tried_again(script: Script) -> None:
    starts: list[None] = []

    def fail() -> None:
        starts.append(None)
        lose(signal.SIGINT)
        raise RuntimeError("no raylet")

    script(start=fail)
    with pytest.raises(KeyboardInterrupt), ray_running(RaySettings()):
        pass
    assert len(starts) == 1


def test_a_start_that_fails_twice_says_what_ray_said(script: Script) -> None:
    def fail() -> None:
        raise RuntimeError("no raylet")

    script(start=fail)
    with (
        pytest.raises(RayStartError, match="could not be started on this machine: no raylet"),
        ray_running(RaySettings()),
    ):
        pass


def test_the_handlers_of_before_are_back(script: Script) -> None:
    before = [signal.getsignal(number) for number in NUMBERS]
    script()
    with ray_running(RaySettings()):
        assert [signal.getsignal(number) for number in NUMBERS] == before
    assert [signal.getsignal(number) for number in NUMBERS] == before
