"""Language models on Apple silicon by `mlx-lm`: answers take turns token by token, and join between steps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from actors import mlx, torch_device
from actors.llm.local import Stepped, SteppedOptions

WORK_BYTES = 400 << 20


@dataclass(frozen=True)
class MlxLmOptions(SteppedOptions):
    """Options of `MlxLm`."""

    model_name: str = "mlx-community/Qwen3.5-4B-4bit"
    """Hub id or folder of a model in MLX's format, quantised or not."""
    context_tokens: int = 4096
    """Tokens of prompt and answer that one request may have."""


class MlxLm(Stepped):
    """A causal language model in MLX."""

    devices: ClassVar[tuple[str, ...]] = ("mps", "cpu")
    _options: MlxLmOptions

    def __init__(self, options: MlxLmOptions | None = None) -> None:
        super().__init__(options or MlxLmOptions())

    def load(self, device: str, dtype: str, threads: int) -> None:
        """The number format is that of the files: `dtype` must be auto.  MLX chooses its threads itself."""
        torch_device.require_own("llm mlx-lm", dtype)
        import mlx_lm

        mlx.use(device)
        folder = mlx.folder(self._options.model_name)
        model, tokenizer = mlx_lm.load(str(folder))
        config = json.loads((folder / "config.json").read_text("utf-8"))
        self.use_mlx(model, tokenizer, config)

    def use_mlx(self, model: Any, tokenizer: Any, config: dict[str, Any]) -> None:
        """Work with an MLX model, mlx-lm's wrapper of its tokenizer, and its config.json."""
        from actors.llm.mlx_decoding import MlxDecoder

        plain = tokenizer._tokenizer
        decoder = MlxDecoder(model, plain, self._options, frozenset(tokenizer.eos_token_ids))
        self._install(decoder, plain, config.get("text_config", config).get("max_position_embeddings"))

    def memory_bytes(self, dtype: str) -> int:
        """Weights as they are on disk, keys and values in 16 bits, and work space; 0 while not on this machine."""
        here, weights = self._here(), mlx.weight_bytes(self._options.model_name)
        return weights + self._cache_bytes(here[1], 2) + WORK_BYTES if here and weights else 0
