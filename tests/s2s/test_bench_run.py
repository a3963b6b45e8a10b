"""`bench`: figures on standard output, broken bounds on standard error, exit 1 only with `--check`."""

from __future__ import annotations

import argparse
import json

import pytest

from s2s.bench import bounds, run, startup
from s2s.bench.moments import longest_gap_s
from s2s.config import Config


@pytest.fixture(autouse=True)
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = {"ready_s": 31.0}
    result = {
        "bench": "startup",
        "figures": figures,
        "broken": bounds.broken(figures, bounds.STARTUP),
    }
    monkeypatch.setattr(startup, "run", lambda config, args: result)


def bench(check: bool, as_json: bool = True) -> int:
    return run.run(Config(), argparse.Namespace(name="startup", json=as_json, check=check))


def test_a_broken_bound_is_named_and_fails_the_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(check=True) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["figures"] == {"ready_s": 31.0}
    assert "ready_s is 31, more than 25" in said.err


def test_without_check_a_broken_bound_is_only_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(check=False, as_json=False) == 0
    assert "ready_s is 31, more than 25" in " ".join(capsys.readouterr().out.split())


def test_a_figure_at_its_bound_keeps_it() -> None:
    assert bounds.broken({"ready_s": 25.0}, bounds.STARTUP) == []


@pytest.mark.parametrize(
    ("sound", "gap_s"),
    [
        ([], 0.0),
        ([(5.0, 1.0)], 0.0),
        ([(5.0, 1.0), (5.1, 1.0), (6.9, 1.0)], 0.0),
        ([(5.0, 1.0), (6.5, 1.0), (7.0, 1.0), (10.0, 1.0)], 1.5),
    ],
)
def test_a_gap_is_silence_for_want_of_sound(sound: list[tuple[float, float]], gap_s: float) -> None:
    assert longest_gap_s(sound) == pytest.approx(gap_s)
