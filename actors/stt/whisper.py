"""Whisper through transformers: any `openai/whisper-*` or `distil-whisper/*` checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from actors import languages, pretrained, torch_device
from actors.messages import STT_RATE_HZ, SttRequest, Word
from actors.stt.listening import Stop, Windowed
from actors.stt.utterance import Window

if TYPE_CHECKING:
    from torch import Tensor

    from actors.stt.network import Hypothesis, Network
    from actors.stt.vocabulary import Vocabulary

KINDS = {"whisper": "WhisperForConditionalGeneration"}
POSITION_SAMPLES = STT_RATE_HZ // 50
"""One encoder position: 20 ms."""
TOKENS_PER_S = 16
SPARE_TOKENS = 16
PUBLISHED = {"tiny": 39e6, "base": 74e6, "small": 244e6, "medium": 769e6, "turbo": 809e6, "large": 1550e6}
UNSPACED_LANGUAGES = frozenset({"zh", "ja", "th", "lo", "my", "yue", "km"})
WORK_BYTES_PER_UTTERANCE = 60_000_000


@dataclass(frozen=True)
class WhisperOptions:
    """Options of `Whisper`."""

    model_name: str = "whisper-tiny.en"
    """Asset, hub id or folder of the checkpoint."""
    torch_dtype: str = "auto"
    """auto, float16, bfloat16 or float32; auto: float16 on a GPU, bfloat16 on a CPU made for it, else float32."""
    decoder_weights: Literal["auto", "int8", "own"] = "auto"
    """int8: the decoder's matrices are rounded to int8 as the model is loaded, on a CPU; own: they are of the dtype.
    auto: int8 on an x86 CPU where neither a dtype nor a `compile_mode` is set.  tiny.en on two cores of an EPYC with
    AVX-512: 3.4 ms for each token in place of 9.0 (bfloat16) or 14 (float32)."""
    compile_mode: Literal["default", "reduce-overhead", "max-autotune"] | None = None
    """Decode with a static cache and `torch.compile`, compiled in `warmup` (up to minutes; on a CPU by g++).
    Utterances then go one by one through the full window, so that no shape changes."""
    language: str = "auto"
    """ISO 639-1 code, or auto: detected for each utterance.  A request's own language goes first."""
    gen: dict[str, Any] = field(default_factory=dict)
    """Arguments of transformers' `generate()`; max_new_tokens (per window), task, num_beams, temperature, ..."""
    encoder_window: Literal["auto", "full"] = "auto"
    """auto: encode the utterance and some silence (see `windows.LENGTHS_S`), not always 30 s; full: always 30 s.
    tiny.en on 21 recordings of 1-10 s (225 words): WER 3.6 % with auto, and the encoder at 10 s costs a quarter of what
    it does at 30 s (210 against 862 ms of CPU, float32).  8 s windows did worse than 10 s.  One clip of 1.1 s made the
    decoder go round in circles: such a window is decoded again at full length."""
    max_batch: int = 8
    """Utterances decoded together on a GPU, at most.  A CPU takes them one by one, which is as fast and answers the
    first sooner."""


class Whisper(Windowed):
    """Transcripts of utterances of any length.  A cancelled one stops at the next token, or after its encoder's
    forward."""

    name: ClassVar[str] = "whisper"

    def __init__(self, options: WhisperOptions | None = None) -> None:
        super().__init__(options or WhisperOptions())
        self._network: Network
        self._vocabulary: Vocabulary
        self._features: Any = None
        self._lengths_s: tuple[float, ...] = ()
        self._heads: list[tuple[int, int]] = []
        self._greedy = True

    @property
    def languages(self) -> tuple[str, ...] | None:
        if self._features is not None:
            return tuple(self._vocabulary.languages) or ("en",)
        return ("en",) if self._options.model_name.endswith(".en") else None

    @property
    def longest_s(self) -> float:
        return self._lengths_s[-1]

    def load(self, device: str, dtype: str, threads: int) -> None:
        """Load the checkpoint.

        Raises `ImpossibleDtype` for a number format that the device lacks, `UnknownGenerationArgument` for a name in
        `gen` that generate() does not know, `ValueError` for a checkpoint that is no Whisper, a language it lacks and
        int8 where it does not work, `MissingCompiler` for a `compile_mode` where nothing can be compiled.
        """
        options = self._options
        asked = dtype if options.torch_dtype == "auto" else options.torch_dtype

        from transformers import WhisperFeatureExtractor, WhisperTokenizerFast

        from actors.stt import generation, vocabulary

        generation.validate(options.gen)
        if options.compile_mode is not None:
            torch_device.require_compiler(device)
        int8 = self._int8(device, asked)
        model, folder = pretrained.load(options.model_name, KINDS, device, asked, threads)
        tokenizer = WhisperTokenizerFast.from_pretrained(folder)
        self.install(
            model,
            vocabulary.read(tokenizer, model.generation_config, model.config.vocab_size),
            WhisperFeatureExtractor.from_pretrained(folder),
            device,
            int8,
        )

    def _int8(self, device: str, dtype: str) -> bool:
        """Whether the decoder is to be rounded.  Raises `ValueError` where it was asked for and cannot be."""
        from actors import int8_linear

        options = self._options
        if options.decoder_weights == "own":
            return False
        problem = None
        if device != "cpu":
            problem = f"on {device}, and works on a CPU"
        elif options.compile_mode is not None:
            problem = "with a compile_mode, which it cannot have"
        elif not int8_linear.available():
            problem = "on a CPU that this torch has no int8 kernels for"
        if options.decoder_weights == "auto":
            return problem is None and dtype == "auto"
        if problem:
            raise ValueError(
                f"stt whisper: decoder_weights int8 was asked for {problem}; choose auto or own."
            )
        return True

    def install(
        self, model: Any, vocabulary: Vocabulary, features: Any, device: str, int8: bool = False
    ) -> None:
        """Use a loaded `WhisperForConditionalGeneration` on `device` and its feature extractor; `int8`: its decoder's
        matrices are rounded."""
        import torch

        from actors.stt import generation, windows
        from actors.stt.network import POSITIONS_PER_S, Network

        if int8:
            from actors import int8_linear

            int8_linear.quantize(model.model.decoder)
            model.proj_out = int8_linear.Int8Linear(model.proj_out)
        options = self._options
        self._device = device
        self._vocabulary, self._features = vocabulary, features
        if options.language != "auto" and (problem := self._language_problem(options.language)):
            raise ValueError(f"stt whisper: {problem}")
        self._network = Network(model, vocabulary.eot, vocabulary.suppress, vocabulary.begin_suppress)
        full_s = self._network.positions / POSITIONS_PER_S
        whole = options.encoder_window == "full" or options.compile_mode is not None
        self._lengths_s = windows.lengths_s(full_s, whole)
        layers, heads = model.config.decoder_layers, model.config.decoder_attention_heads
        self._heads = [
            tuple(pair) for pair in getattr(model.generation_config, "alignment_heads", None) or ()
        ] or [(layer, head) for layer in range(layers // 2, layers) for head in range(heads)]
        self._greedy = generation.is_greedy(options.gen) and options.compile_mode is None
        if options.compile_mode is not None:
            model.generation_config.cache_implementation = "static"
            # One size for every utterance: generate() would size the cache by max_new_tokens, and each size compiles.
            model.generation_config.max_cache_len = model.config.max_target_positions
            # On a GPU generate() would compile once more, in a mode of its own.
            model.generation_config.disable_compile = True
            model.forward = torch.compile(model.forward, mode=options.compile_mode, fullgraph=True)

    def warmup(self) -> None:
        """Transcribe a tone, with word times; on a GPU in every window length (a CPU keeps nothing by shape).

        What is compiled is compiled for any prompt too.
        """
        import numpy as np

        from actors.stt import windows

        language = next(iter(self._vocabulary.languages), None)
        lengths_s = self._lengths_s[:1] if self._device == "cpu" else self._lengths_s
        for length_s in lengths_s:
            samples = np.arange(int((length_s - windows.MARGIN_S) * STT_RATE_HZ))
            tone = (3_000 * np.sin(samples / 10)).astype(np.int16)
            for prompt in (None,) if self._options.compile_mode is None else (None, "One.", "One, two."):
                request = SttRequest(tone.tobytes(), language, prompt, word_times=True)
                for window in self._utterance(0, request).windows:
                    self._decode([window], [lambda: False], limit=8)

    def memory_bytes(self, dtype: str) -> int:
        """Weights and `max_batch` utterances of work, in `dtype` (auto: 4 bytes a number)."""
        options = self._options
        asked = dtype if options.torch_dtype == "auto" else options.torch_dtype
        work_bytes = options.max_batch * WORK_BYTES_PER_UTTERANCE
        return pretrained.memory_bytes(options.model_name, asked, PUBLISHED, work_bytes)

    def _positions(self, samples: int) -> int:
        from actors.stt import windows

        return windows.positions(samples, self._lengths_s)

    def _language_problem(self, language: str) -> str | None:
        known = self.languages
        if known is None or languages.code(language) in known:
            return None
        hint = (
            " choose a multilingual checkpoint"
            if known == ("en",)
            else f" it knows {', '.join(sorted(known))}"
        )
        return f"language {language!r} was asked for, which {self._options.model_name} does not know;{hint}."

    def _groups(self, windows: Sequence[Window]) -> list[list[Window]]:
        """Of equal length, with prompts of equal length."""
        size = 1 if self._device == "cpu" or not self._greedy else self._options.max_batch
        groups: list[list[Window]] = []
        open_groups: dict[tuple[int, int], list[Window]] = {}
        for window in windows:
            shape = (window.positions, len(self._prompt(window, "en")))
            group = open_groups.get(shape)
            if group is None or len(group) >= size:
                group = open_groups[shape] = []
                groups.append(group)
            group.append(window)
        return groups

    def _prompt(self, window: Window, language: str | None) -> list[int]:
        task = self._options.gen.get("task") or "transcribe"
        known = language if language in self._vocabulary.languages else None
        known = known or next(iter(self._vocabulary.languages), None)
        return self._vocabulary.prompt(known, task, window.utterance.request.prompt)

    def _decode(self, group: list[Window], stops: Sequence[Stop], limit: int | None = None) -> None:
        import torch

        with torch.inference_mode():
            hidden = self._encode(group)
            self._detect(group, hidden)
            hypotheses = self._hypotheses(group, hidden, stops, limit)
            full = self._network.positions
            for row, (window, found) in enumerate(zip(group, hypotheses, strict=True)):
                heard = hidden[row : row + 1]
                if found.ended in ("loop", "limit") and window.positions < full and limit is None:
                    # Short windows now and then make the decoder go round in circles: give it all the silence.
                    window.positions = full
                    heard = self._encode([window])
                    (found,) = self._hypotheses([window], heard, [stops[row]], None)
                self._judge(window, found)
                if window.utterance.request.word_times and window.text:
                    window.words = self._words(window, heard)

    def _encode(self, group: list[Window]) -> Tensor:
        """[B, positions, width] of the windows' audio."""
        mel = self._features(
            [window.audio for window in group],
            sampling_rate=STT_RATE_HZ,
            return_tensors="pt",
            padding="max_length",
            max_length=group[0].positions * POSITION_SAMPLES,
            truncation=True,
            # torch has no spectrogram on mps.
            device=self._device if self._device.startswith("cuda") else "cpu",
        ).input_features
        return self._network.encode(mel)

    def _detect(self, group: list[Window], hidden: Tensor) -> None:
        """Name the language of utterances that have none yet."""
        if all(window.utterance.language is not None for window in group):
            return
        codes = list(self._vocabulary.languages)
        logits = self._network.first_logits(hidden, self._vocabulary.sot)
        best = logits[:, list(self._vocabulary.languages.values())].argmax(-1).tolist()
        for window, index in zip(group, best, strict=True):
            if window.utterance.language is None:
                window.utterance.language = codes[index]

    def _hypotheses(
        self, group: list[Window], hidden: Tensor, stops: Sequence[Stop], limit: int | None
    ) -> list[Hypothesis]:
        prompts = [self._prompt(window, window.utterance.language) for window in group]
        limits = [self._limit(window, len(prompts[0]), limit) for window in group]
        vocabulary = self._vocabulary
        if self._greedy:
            return self._network.greedy(
                hidden,
                prompts,
                limits,
                vocabulary.sot,
                vocabulary.no_speech,
                lambda row: stops[row](),
            )
        return [
            self._generate(window, hidden[row : row + 1], prompts[row], limits[row], stops[row])
            for row, window in enumerate(group)
        ]

    def _generate(
        self, window: Window, hidden: Tensor, prompt: list[int], limit: int, cancelled: Stop
    ) -> Hypothesis:
        """Decode one window by transformers' generate()."""
        from actors.stt import generation
        from actors.stt.network import Hypothesis

        vocabulary, gen = self._vocabulary, dict(self._options.gen)
        limit = min(limit, gen.pop("max_new_tokens", None) or limit)
        language = window.utterance.language if vocabulary.multilingual else None
        before = prompt[: prompt.index(vocabulary.sot)] or None
        sequence = generation.generate(self._network.model, hidden, language, before, limit, gen, cancelled)
        tokens = [token for token in sequence if token < vocabulary.eot]
        logprob, no_speech = self._network.score(hidden, prompt, tokens, vocabulary.sot, vocabulary.no_speech)
        ended = "limit" if len(tokens) >= limit else "end"
        return Hypothesis(tokens, logprob, no_speech, "cancelled" if cancelled() else ended)

    def _limit(self, window: Window, prompt_tokens: int, limit: int | None) -> int:
        """Tokens that `window` may take: more than anybody says in its time."""
        spoken = int(len(window.audio) / STT_RATE_HZ * TOKENS_PER_S) + SPARE_TOKENS
        asked = limit or self._options.gen.get("max_new_tokens") or spoken
        context: int = self._network.model.config.max_target_positions
        return max(1, min(asked, spoken, context - prompt_tokens - 1))

    def _judge(self, window: Window, found: Hypothesis) -> None:
        """Write what was `found` into `window`, unless it is cancelled or nobody said it."""
        from actors.stt import gates

        if found.ended == "cancelled":
            return
        text = self._vocabulary.text(found.tokens)
        window.logprob = found.logprob
        window.rejected = gates.rejection(text, found.logprob, found.no_speech, found.ended == "loop")
        if window.rejected is None:
            window.text, window.tokens = text, found.tokens
        window.decoded = True
        window.utterance.left -= 1

    def _words(self, window: Window, hidden: Tensor) -> list[Word]:
        from actors.stt import word_times

        prompt = self._prompt(window, window.utterance.language)
        attention = self._network.attention(hidden, prompt, window.tokens, self._heads)
        heard = -(-len(window.audio) // POSITION_SAMPLES)
        return word_times.words(
            attention[:, :, :heard].cpu().numpy(),
            window.tokens,
            self._vocabulary.decode,
            window.utterance.language not in UNSPACED_LANGUAGES,
            window.start_ms,
        )
