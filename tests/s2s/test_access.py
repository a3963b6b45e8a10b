"""Who may use the server."""

import pytest

from s2s.access import Access, AccessError, RateLimit, is_loopback, key_of


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "::1"])
def test_loopback_is_this_machine_only(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.com"])
def test_everything_else_can_be_reached_from_outside(host: str) -> None:
    assert not is_loopback(host)


def test_without_keys_everybody_here_may() -> None:
    assert Access().check_key(None) is None
    assert Access().check_key("anything") is None


def test_a_key_is_asked_for_and_compared_whole() -> None:
    access = Access(keys=("right", "also-right"))
    assert access.check_key("also-right") is None
    for wrong in ("righ", "right ", "", "falsch-ü"):
        with pytest.raises(AccessError):
            access.check_key(wrong)
    with pytest.raises(AccessError, match="Authorization"):
        access.check_key(None)


def test_a_client_secret_opens_its_session_until_it_expires() -> None:
    clock = Clock()
    access = Access(keys=("key",), now=clock)
    secret = access.create_secret({"type": "realtime", "instructions": "be brief"}, seconds=60)
    assert access.check_key(secret.value) == secret
    with pytest.raises(AccessError, match="ephemeral"):
        access.check_api_key(secret.value)
    clock.at += 61
    with pytest.raises(AccessError, match="not valid"):
        access.check_key(secret.value)


@pytest.mark.parametrize("seconds", [0, 9, 7201])
def test_a_secrets_life_has_bounds(seconds: int) -> None:
    with pytest.raises(ValueError, match="10 to 7200"):
        Access().create_secret({}, seconds)


def test_expired_secrets_are_forgotten() -> None:
    clock = Clock()
    access = Access(now=clock)
    access.create_secret({}, 10)
    clock.at += 11
    access.create_secret({}, 10)
    assert len(access._secrets) == 1


def test_a_browser_comes_from_this_server_or_an_allowed_origin() -> None:
    access = Access(origins=("https://app.example",))
    access.check_origin(None, "localhost:8765")
    access.check_origin("http://localhost:8765", "localhost:8765")
    access.check_origin("https://app.example", "localhost:8765")
    with pytest.raises(AccessError, match=r"--allow_origin https://evil\.example"):
        access.check_origin("https://evil.example", "localhost:8765")
    Access(origins=("*",)).check_origin("https://evil.example", "localhost:8765")


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ({"authorization": "Bearer k"}, "k"),
        ({"authorization": "Basic k"}, None),
        ({"api-key": "k"}, "k"),
        ({"sec-websocket-protocol": "realtime, openai-insecure-api-key.k"}, "k"),
        ({"sec-websocket-protocol": "realtime"}, None),
        ({}, None),
    ],
)
def test_a_key_is_found_where_clients_put_it(headers: dict[str, str], key: str | None) -> None:
    assert key_of(headers) == key


def test_the_rate_is_bounded_on_average_and_at_once() -> None:
    clock = Clock()
    rate = RateLimit(per_second=2, burst=3, now=clock)
    assert [rate.take() for _ in range(4)] == [True, True, True, False]
    clock.at += 0.5
    assert [rate.take() for _ in range(2)] == [True, False]
