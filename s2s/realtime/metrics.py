"""The figures of a gateway in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from s2s.histograms import BUCKETS_S
from s2s.sessions import Sessions


class _Collector:
    def __init__(self, sessions: Sessions, figures: Mapping[str, Any], pools: Mapping[str, int]) -> None:
        self._sessions = sessions
        self._figures = figures
        self._pools = pools

    def collect(self) -> Iterator[Any]:
        yield GaugeMetricFamily("s2s_sessions", "Open sessions", value=len(self._sessions.drivers))
        yield GaugeMetricFamily(
            "s2s_sessions_max", "Most sessions at once", value=self._sessions.max_sessions
        )
        replicas = GaugeMetricFamily("s2s_replicas", "Replicas in the pool", labels=["stage"])
        for stage, count in self._pools.items():
            replicas.add_metric([stage], count)
        yield replicas
        families: dict[str, GaugeMetricFamily] = {}
        for stage, figures in self._figures.items():
            for name, value in msgspec.to_builtins(figures).items():
                if isinstance(value, (int, float)):
                    family = families.setdefault(
                        name, GaugeMetricFamily(f"s2s_queue_{name}", f"Queue: {name}", labels=["stage"])
                    )
                    family.add_metric([stage], value)
        yield from families.values()
        early = CounterMetricFamily(
            "s2s_speculation", "Work begun before a turn was over", labels=["work", "outcome"]
        )
        for work, counted in self._sessions.speculation().items():
            early.add_metric([work, "used"], counted.used)
            early.add_metric([work, "thrown_away"], counted.thrown_away)
        yield early
        for step, (counts, seconds) in self._sessions.histograms().steps.items():
            yield _histogram(step, counts, seconds)


def _histogram(step: str, counts: Sequence[int], seconds: float) -> HistogramMetricFamily:
    family = HistogramMetricFamily(f"s2s_turn_{step}_seconds", f"Turns: {step.replace('_', ' ')}")
    total, buckets = 0, []
    for edge, count in zip([*map(str, BUCKETS_S), "+Inf"], counts, strict=True):
        total += count
        buckets.append((edge, total))
    family.add_metric([], buckets, seconds)
    return family


def metrics_text(sessions: Sessions, figures: Mapping[str, Any], pools: Mapping[str, int]) -> str:
    registry = CollectorRegistry()
    registry.register(_Collector(sessions, figures, pools))
    return generate_latest(registry).decode()
