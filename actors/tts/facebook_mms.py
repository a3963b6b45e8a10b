"""Facebook MMS through transformers (VITS): a voice each for some 1,100 languages."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from actors import pretrained
from actors.messages import TtsRequest
from actors.tts.speaking import Sound, Speaker, Stop, Unspeakable

KINDS = {"vits": "VitsModel"}
PARAMETERS = {"mms-tts": 36.3e6}
KEPT = 3
"""Languages whose model stays loaded."""
MIN_SPEED, MAX_SPEED = 0.5, 2.0
_CODES = (
    "ar:ara az:azb bg:bul ca:cat cy:cym de:deu el:ell en:eng es:spa fa:fas fi:fin fr:fra he:heb hi:hin hu:hun hy:hyw "
    "id:ind is:isl kk:kaz kn:kan ko:kor lv:lav mr:mar ms:zlm nl:nld pl:pol pt:por ro:ron ru:rus sv:swe sw:swh ta:tam "
    "th:tha tl:tgl tr:tur uk:ukr ur:urd vi:vie"
)
CODES: Mapping[str, str] = dict(pair.split(":") for pair in _CODES.split())
"""The model's language code by ISO 639-1."""


@dataclass(frozen=True)
class FacebookMMSOptions:
    """Options of `FacebookMMS`."""

    model_name: str | None = None
    """Asset, hub id or folder of a VITS checkpoint, which then speaks `language` alone; None: facebook/mms-tts-… of
    the language of each clause."""
    language: str = "en"
    """ISO 639-1 code of clauses that name none; its model is loaded at the start, others when they are needed."""


class FacebookMMS(Speaker):
    """Speech at the model's own rate, 16 kHz, in one forward a clause."""

    name: ClassVar[str] = "facebookMMS"
    rate_hz = 16_000

    def __init__(self, options: FacebookMMSOptions | None = None) -> None:
        super().__init__(options or FacebookMMSOptions())
        self._dtype, self._threads = "float32", 1
        self._loaded: OrderedDict[str, tuple[Any, Any, pretrained.Interruptible]] = OrderedDict()

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(CODES) if self._options.model_name is None else (self._options.language,)

    @property
    def sample_text(self) -> str:
        """The first letters of the voice's alphabet, which may not be Latin."""
        letters = sorted(self._model(self._options.language)[1].get_vocab())
        return "".join(letter for letter in letters if len(letter) == 1 and letter.isalpha())[:24]

    def load(self, device: str, dtype: str, threads: int) -> None:
        """`dtype` auto is float32, as the weights are.  Raises `ImportError` where text must be romanised and uroman is
        missing."""
        if self._options.language not in self.languages:
            raise ValueError(
                f"tts facebookMMS: language {self._options.language!r} has no voice here; "
                f"choose {', '.join(CODES)}, or name a checkpoint by --tts_model_name."
            )
        self._device, self._threads = device, threads
        self._dtype = "float32" if dtype == "auto" else dtype
        self.rate_hz = self._model(self._options.language)[0].config.sampling_rate

    def memory_bytes(self, dtype: str) -> int:
        name = self._options.model_name or "facebook/mms-tts"
        return pretrained.memory_bytes(name, dtype, PARAMETERS)

    def speak(self, request: TtsRequest, voice: str | None, language: str | None, stopped: Stop) -> Sound:
        import torch

        model, tokenizer, interruptible = self._model(language or self._options.language)
        ids = tokenizer(request.text, return_tensors="pt").to(self._device)
        if not ids["input_ids"].shape[-1]:
            raise Unspeakable(f"nothing in {request.text!r} is in the alphabet of the voice.")
        speed = min(max(request.speed, MIN_SPEED), MAX_SPEED)
        with torch.inference_mode(), interruptible.until(stopped):
            output = model(**ids, speaking_rate=model.config.speaking_rate * speed)
        yield output.waveform[0].float().cpu().numpy()

    def _model(self, language: str) -> tuple[Any, Any, pretrained.Interruptible]:
        """Model and tokenizer of `language`, loaded if need be; the one not used for longest goes."""
        if language not in self._loaded:
            name = self._options.model_name or f"facebook/mms-tts-{CODES[language]}"
            self._loaded[language] = self._open(name)
            if len(self._loaded) > KEPT:
                self._loaded.popitem(last=False)
        self._loaded.move_to_end(language)
        return self._loaded[language]

    def _open(self, name: str) -> tuple[Any, Any, pretrained.Interruptible]:
        from transformers import AutoTokenizer
        from transformers.utils import is_uroman_available

        model, folder = pretrained.load(name, KINDS, self._device, self._dtype, self._threads)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        if tokenizer.is_uroman and not is_uroman_available():
            raise ImportError(f"{name} reads romanised text, and uroman is not installed")
        layers = [*model.text_encoder.encoder.layers, *model.flow.flows, *model.decoder.resblocks]
        return model, tokenizer, pretrained.Interruptible(layers)
