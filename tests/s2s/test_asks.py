"""The configuration as asks: what a backend runs on depends on what is installed."""

import pytest

from actors import registry
from orchestration.inventory import Gpu, Inventory, Node
from s2s.asks import asks, plan_for
from s2s.config import ConfigError
from s2s.layers import load

GPU_NODE = Inventory((Node("a", 16, gpus=(Gpu(0, "GPU", 24 << 30, 24 << 30),)),))


@pytest.fixture
def without_kokoro(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.Entry, "lacks", lambda self, kind: self.needs.get(kind))


@pytest.fixture
def with_kokoro(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.Entry, "lacks", lambda self, kind: None)


@pytest.mark.usefixtures("without_kokoro")
def test_auto_leaves_a_device_whose_library_is_missing() -> None:
    [slot] = plan_for(load([("device", "auto")]), GPU_NODE).of("tts")
    assert (slot.device, slot.why) == ("cpu", "auto: kokoro does not run on cuda, mps")


@pytest.mark.usefixtures("without_kokoro")
def test_a_device_that_is_asked_for_names_the_extra() -> None:
    with pytest.raises(ConfigError) as caught:
        asks(load([("tts", "kokoro"), ("kokoro_device", "cuda:0")]))
    assert str(caught.value) == (
        "flag --kokoro_device: on cuda:0 tts kokoro needs kokoro, which is not installed; "
        "install the extra: pip install 's2s[kokoro]'."
    )


@pytest.mark.usefixtures("without_kokoro")
def test_an_interpreter_of_its_own_may_have_the_library() -> None:
    [ask] = [
        each
        for each in asks(load([("tts_device", "cuda"), ("tts_python", "/x/python")]))
        if each.stage == "tts"
    ]
    assert (ask.supports, ask.python) == (("cuda", "mps", "cpu"), "/x/python")


@pytest.mark.usefixtures("with_kokoro")
def test_with_the_library_the_gpu_is_used() -> None:
    [slot] = plan_for(load([("tts_device", "auto")]), GPU_NODE).of("tts")
    assert slot.device == "cuda:0"
