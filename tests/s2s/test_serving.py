"""The sockets of a server: where it listens, over TLS too, and what it says when it cannot."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from s2s.serving import HttpServer, ServeError, ServeOptions


async def hello(request: Request) -> PlainTextResponse:
    return PlainTextResponse(request.url.scheme)


def server(options: ServeOptions) -> HttpServer:
    return HttpServer(Starlette(routes=[Route("/", hello)]), options)


async def get(address: str, context: ssl.SSLContext | None = None) -> str:
    read: Callable[[], bytes] = lambda: urlopen(f"{address}/", timeout=10, context=context).read()  # noqa: E731
    return (await asyncio.to_thread(read)).decode()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_port_0_is_any_free_port_and_the_address_names_it(host: str) -> None:
    serving = server(ServeOptions(host=host, port=0))
    await serving.start()
    assert serving.address.startswith(f"http://{host}:")
    assert await get(serving.address) == "http"
    await serving.stop()
    with pytest.raises(OSError):
        await get(serving.address)


async def test_a_port_in_use_is_an_error_that_says_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServeError, match=rf"127\.0\.0\.1 port {port}: Address already in use.*--port 0"):
            server(ServeOptions(port=port))


def test_a_host_that_is_not_this_machine_is_an_error() -> None:
    with pytest.raises(ServeError, match=r"Cannot listen on 192\.0\.2\.200"):
        server(ServeOptions(host="192.0.2.200", port=0))


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate of localhost, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(key), "-out", str(cert)]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command = ["openssl", "req", "-x509", *curve, "-nodes", "-days", "1", *subject, *files]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    return cert, key


async def test_with_a_certificate_it_speaks_https(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    serving = server(ServeOptions(host="localhost", port=0, tls_cert=str(cert), tls_key=str(key)))
    await serving.start()
    assert serving.address.startswith("https://localhost:")
    assert await get(serving.address, ssl.create_default_context(cafile=cert)) == "https"
    await serving.stop()
