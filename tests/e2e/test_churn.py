"""Clients come and go, some in the middle of an answer; nothing of them is left."""

from __future__ import annotations

import psutil
import pytest

from tests.e2e.wire import TEXT_ITEM, gauge, until_idle, wire

pytestmark = pytest.mark.e2e
MAX_GROWTH_BYTES = 40 * 2**20


def gateway_of(server: str) -> psutil.Process:
    """The process that listens at the server's port."""
    port = int(server.rpartition(":")[2])
    listening = [
        each for each in psutil.net_connections("tcp") if each.status == "LISTEN" and each.laddr.port == port
    ]
    return psutil.Process(listening[0].pid)


async def come_and_go(server: str, times: int) -> None:
    """Every third client leaves, without a word, while it is being answered."""
    for number in range(times):
        async with wire(server) as client:
            if number % 3 == 0:
                await client.send(TEXT_ITEM, {"type": "response.create"})
                await client.until("response.output_audio_transcript.delta")
                client.socket.transport.abort()


async def nothing_is_left(server: str, times: int) -> None:
    await come_and_go(server, 6)
    await until_idle(server)
    gateway, replicas = gateway_of(server), gauge(server, "s2s_replicas")
    before, files = gateway.memory_info().rss, gateway.num_fds()
    await come_and_go(server, times)
    await until_idle(server)
    assert gauge(server, "s2s_replicas") == replicas
    assert gateway.memory_info().rss - before < MAX_GROWTH_BYTES
    assert gateway.num_fds() <= files + 5


async def test_20_clients_leave_nothing(server: str) -> None:
    await nothing_is_left(server, 20)


@pytest.mark.long
async def test_200_clients_leave_nothing(server: str) -> None:
    await nothing_is_left(server, 200)
