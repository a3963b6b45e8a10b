"""The page in a real browser: Debian's Chromium, whose microphone is a packaged recording."""

from __future__ import annotations

import base64
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, WebSocketRoute, expect, sync_playwright

from s2s.audio import Clip, read_audio, write_wav

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)"
    ),
]

PATIENCE_MS = 60_000
RATE_HZ = 48_000
WIRE_HZ = 24_000
SAMPLE_FRAMES = 25
LOUD = 1000
"""Peak of a frame in which something is said."""
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-ui-for-media-stream",
    "--use-fake-device-for-media-stream",
)
HEARD = re.compile("capital of france", re.IGNORECASE)
SPEAKING = "parseFloat(document.getElementById('voice').style.getPropertyValue('--voice')) > 0.3"
"""The page measures what its speakers play: above -42 dB it is no silence."""
STORY = "Please tell me a very long story about a dragon, a sailor and a lighthouse."


@pytest.fixture(scope="module")
def browser(question_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Its microphone says the question once, each time that it is opened."""
    microphone = tmp_path_factory.mktemp("microphone") / "question.wav"
    pcm = read_audio(question_file, RATE_HZ).pcm
    write_wav(microphone, Clip(bytes(RATE_HZ) + pcm + bytes(2 * 60 * RATE_HZ), RATE_HZ))
    flags = [*FLAGS, f"--use-file-for-fake-audio-capture={microphone}%noloop"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that nothing goes wrong on."""
    page = browser.new_page(viewport={"width": 900, "height": 640})
    page.set_default_timeout(PATIENCE_MS)
    wrong: list[str] = []

    def heed(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            wrong.append(message.text)

    page.on("console", heed)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    page.close()
    assert wrong == []


@pytest.fixture
def story_file(server: str, tmp_path: Path) -> Path:
    """A recording that is answered at length, in the server's own voice."""
    body = json.dumps({"input": STORY, "response_format": "wav", "voice": "alloy"}).encode()
    request = Request(f"{server}/v1/audio/speech", body, {"Content-Type": "application/json"})
    file = tmp_path / "story.wav"
    with urlopen(request, timeout=PATIENCE_MS / 1000) as reply:
        file.write_bytes(reply.read())
    return file


def frame_peaks(pcm: bytes) -> list[int]:
    """The peak of each 20 ms of `pcm`, int16 at 24 kHz."""
    samples = np.abs(np.frombuffer(pcm, np.int16).astype(np.int32))
    frame = WIRE_HZ // 50
    return [int(peak) for peak in samples[: len(samples) // frame * frame].reshape(-1, frame).max(axis=1)]


def patiently(page: Page, done: Callable[[], bool]) -> None:
    """Return when `done`, while what the page sends is taken in."""
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not done():
        assert time.monotonic() < deadline
        page.wait_for_timeout(20)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots are kept, for people to look at."""
    return tmp_path_factory.mktemp("pictures")


def test_a_person_talks_and_is_answered_aloud(page: Page, server: str, pictures: Path) -> None:
    page.goto(f"{server}/")
    page.screenshot(path=pictures / "1-before.png")
    page.get_by_role("button", name="Talk").click()
    expect(page.get_by_role("button", name="Stop")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator(".caption.user")).to_have_text(HEARD, timeout=PATIENCE_MS)
    page.wait_for_function(SPEAKING)
    page.screenshot(path=pictures / "2-speaking.png")
    expect(page.locator(".caption.agent span")).to_have_text(re.compile(r"\w"))
    expect(page.locator(".caption.agent small")).to_have_text(re.compile("after your last word"))
    expect(page.get_by_role("status")).to_have_text("Listening.", timeout=PATIENCE_MS)
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("status")).to_have_text("Press the button, and talk.")
    expect(page.get_by_role("alert")).to_be_hidden()
    page.screenshot(path=pictures / "3-stopped.png")


def test_the_sample_question_needs_no_microphone_and_speech_interrupts_its_answer(
    page: Page, server: str, story_file: Path, pictures: Path
) -> None:
    page.route("**/sample.wav", lambda route: route.fulfill(path=story_file))
    page.goto(f"{server}/")
    page.get_by_role("button", name="Ask the sample question").click()
    expect(page.locator(".caption.user")).to_have_text(
        re.compile("story", re.IGNORECASE), timeout=PATIENCE_MS
    )
    page.wait_for_function(SPEAKING)
    page.get_by_role("button", name="Talk").click()
    expect(page.locator(".caption.agent small").first).to_have_text("interrupted", timeout=PATIENCE_MS)
    page.screenshot(path=pictures / "4-interrupted.png")
    expect(page.locator(".caption.user")).to_have_count(2)
    expect(page.locator(".caption.user").nth(1)).to_have_text(HEARD, timeout=PATIENCE_MS)
    expect(page.locator(".caption.agent")).to_have_count(2, timeout=PATIENCE_MS)
    page.wait_for_function(SPEAKING)
    expect(page.get_by_role("alert")).to_be_hidden()


def test_the_microphone_is_heard_as_soon_as_the_sample_question_is_said(
    page: Page, server: str, question_file: Path, tmp_path: Path
) -> None:
    sample = tmp_path / "sample.wav"
    write_wav(sample, Clip(np.full(SAMPLE_FRAMES * WIRE_HZ // 50, 9000, np.int16).tobytes(), WIRE_HZ))
    sent: list[int] = []

    def listen(socket: WebSocketRoute) -> None:
        def heed(message: str | bytes) -> None:
            event = json.loads(message)
            if event["type"] == "input_audio_buffer.append":
                sent.extend(frame_peaks(base64.b64decode(event["audio"])))

        socket.on_message(heed)
        socket.send(json.dumps({"type": "session.created"}))

    page.route_web_socket(re.compile("/v1/realtime"), listen)
    page.route("**/sample.wav", lambda route: route.fulfill(path=sample))
    page.goto(f"{server}/")
    page.get_by_role("button", name="Ask the sample question").click()
    patiently(page, lambda: len(sent) > SAMPLE_FRAMES)
    page.get_by_role("button", name="Talk").click()
    told = sum(peak > LOUD for peak in frame_peaks(read_audio(question_file, WIRE_HZ).pcm))
    patiently(page, lambda: sum(peak > LOUD for peak in sent[SAMPLE_FRAMES + 1 :]) > 0.7 * told)


def test_an_answer_that_ends_between_two_clauses_is_interrupted_too(page: Page, server: str) -> None:
    said = {
        "type": "response.output_audio_transcript.delta",
        "item_id": "item_1",
        "delta": "Once upon a time",
    }
    ended = {"status": "cancelled", "output": [{"id": "item_1"}, {"id": "item_2"}]}

    def answer(socket: WebSocketRoute) -> None:
        for event in ({"type": "session.created"}, said, {"type": "response.done", "response": ended}):
            socket.send(json.dumps(event))

    page.route_web_socket(re.compile("/v1/realtime"), answer)
    page.goto(f"{server}/")
    page.get_by_role("button", name="Talk").click()
    expect(page.locator(".caption.agent small")).to_have_text("interrupted")
    expect(page.locator(".caption.agent")).to_have_count(1)


def test_what_goes_wrong_is_said_in_words(page: Page, server: str, pictures: Path) -> None:
    def refuse(socket: WebSocketRoute) -> None:
        socket.close(code=1013, reason="All 8 sessions of this server are taken")

    page.route_web_socket(re.compile("/v1/realtime"), refuse)
    page.goto(f"{server}/")
    page.get_by_role("button", name="Talk").click()
    expect(page.get_by_role("alert")).to_contain_text("All 8 sessions of this server are taken")
    expect(page.get_by_role("button", name="Talk")).to_be_visible()
    page.screenshot(path=pictures / "5-refused.png")


def test_a_missing_key_is_asked_for(page: Page, server: str, pictures: Path) -> None:
    offered: list[str] = []

    def ask_for_a_key(socket: WebSocketRoute) -> None:
        error = {
            "type": "invalid_request_error",
            "code": "invalid_api_key",
            "message": "An API key is needed.",
        }
        socket.send(json.dumps({"type": "error", "event_id": "event_1", "error": error}))
        socket.close(code=1008, reason="An API key is needed.")

    page.on("request", lambda request: offered.append(request.url))
    page.route_web_socket(re.compile("/v1/realtime"), ask_for_a_key)
    page.goto(f"{server}/")
    page.get_by_role("button", name="Talk").click()
    page.get_by_label("API key of this server").fill("sesame")
    page.screenshot(path=pictures / "6-key.png")
    page.get_by_role("button", name="Use it").click()
    expect(page.get_by_label("API key of this server")).to_be_hidden()
    assert all(url.startswith((server, "data:")) for url in offered)  # nothing comes from elsewhere
