"""Causal language models through transformers: answers are decoded together, and join between steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from actors.llm.local import Stepped, SteppedOptions
from actors.torch_device import dtype_bytes, resolve_dtype, set_threads

WORK_BYTES = 400 << 20
"""torch, transformers and activations, roughly."""
QUANTIZED_WEIGHT_BYTES = {"bnb-4bit": 0.56, "bnb-8bit": 1.06}
"""Bytes of one weight with its share of the scales."""


@dataclass(frozen=True)
class TransformersOptions(SteppedOptions):
    """How a causal language model is loaded and asked."""

    model_name: str = "smollm2-135m-instruct"
    """An asset, a folder, or a model of the Hugging Face hub."""
    quantization: Literal["none", "bnb-4bit", "bnb-8bit"] = "none"
    """Load the weights quantised by bitsandbytes."""
    attn_implementation: Literal["auto", "sdpa", "eager", "flash_attention_2"] = "auto"
    """Attention kernel; auto: transformers' choice."""

    def __post_init__(self) -> None:
        super().__post_init__()
        known = {
            "quantization": ("none", *QUANTIZED_WEIGHT_BYTES),
            "attn_implementation": ("auto", "sdpa", "eager", "flash_attention_2"),
        }
        for name, values in known.items():
            if getattr(self, name) not in values:
                raise ValueError(f"{name} {getattr(self, name)!r} is not known; choose {', '.join(values)}.")


class Transformers(Stepped):
    """A causal language model."""

    devices: ClassVar[tuple[str, ...]] = ("cuda", "mps", "cpu")
    _options: TransformersOptions

    def __init__(self, options: TransformersOptions) -> None:
        super().__init__(options)

    def load(self, device: str, dtype: str, threads: int) -> None:
        """Load onto `device`: "cpu", "cuda:0", "mps", or "cuda:0+cuda:1" to spread the layers over both."""
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from actors.assets import resolve

        set_threads(threads)
        path = resolve(self._options.model_name)
        tokenizer = AutoTokenizer.from_pretrained(path)
        kwargs = self._loading(device, resolve_dtype(device.partition("+")[0], dtype))
        model = AutoModelForCausalLM.from_pretrained(path, **kwargs)
        if "device_map" not in kwargs:
            model = model.to(device)
        self.use(model, tokenizer, device)

    def use(self, model: Any, tokenizer: Any, device: str = "cpu") -> None:
        """Work with a model and tokenizer that are loaded already."""
        from actors.llm.torch_decoding import TorchDecoder

        self._device = device
        trained = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        self._install(TorchDecoder(model.eval(), tokenizer, self._options), tokenizer, trained)

    def _loading(self, device: str, dtype: str) -> dict[str, Any]:
        import torch

        kwargs: dict[str, Any] = {"dtype": getattr(torch, dtype)}
        if self._options.attn_implementation != "auto":
            kwargs["attn_implementation"] = self._options.attn_implementation
        quantization = self._options.quantization
        if quantization != "none":
            from transformers import BitsAndBytesConfig

            four = quantization == "bnb-4bit"
            kwargs["quantization_config"] = BitsAndBytesConfig(
                load_in_4bit=four, load_in_8bit=not four, bnb_4bit_compute_dtype=getattr(torch, dtype)
            )
            kwargs["device_map"] = {"": device}
        if "+" in device:
            indices = [int(name.partition(":")[2]) for name in device.split("+")]
            kwargs["device_map"] = "auto"
            kwargs["max_memory"] = {index: int(torch.cuda.mem_get_info(index)[0] * 0.9) for index in indices}
        return kwargs

    def memory_bytes(self, dtype: str) -> int:
        """Weights, keys and values of the batch and of kept prompts, and work space; 0 while not on this machine."""
        here = self._here()
        if here is None:
            return 0
        folder, config = here
        number_bytes = dtype_bytes("float32" if dtype == "auto" else dtype)
        stored_bytes = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
        weights = stored_bytes / dtype_bytes(
            str(config.get("dtype") or config.get("torch_dtype") or "bfloat16")
        )
        weight_bytes = QUANTIZED_WEIGHT_BYTES.get(self._options.quantization, number_bytes)
        return int(weights * weight_bytes) + self._cache_bytes(config, number_bytes) + WORK_BYTES
