"""Language models on Apple silicon by `mlx-lm`: answers take turns token by token, and join between steps."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Any

from actors import mlx, torch_device
from actors.backend import Capabilities
from actors.llm.prompt import ChatTemplate
from actors.llm.transformers import Transformers

logger = logging.getLogger(__name__)
WORK_BYTES = 400 << 20


@dataclass(frozen=True)
class MlxLmOptions:
    """How an MLX language model is loaded and asked."""

    model_name: str = "mlx-community/Qwen3.5-4B-4bit"
    """Hub id or folder of a model in MLX's format, quantised or not."""
    context_tokens: int = 4096
    """Tokens of prompt and answer that one request may have."""
    max_batch: int = 4
    """Answers decoded in turns."""
    prefixes: int = 4
    """Prompts whose keys and values are kept for the next turn of their conversation."""
    temperature: float = 0.2
    """0: always the likeliest token.  A request may ask for another."""
    top_p: float = 0.9
    """Sample from the likeliest tokens that together have this probability."""
    repeat_penalty: float = 1.1
    """Divides the score of tokens among the last 64; 1.0: off.  Calls are decoded without."""
    max_tokens: int = 512
    """Longest answer, in tokens, where the request states none."""
    thinking: bool = False
    """Whether models that can are to think before they answer."""


class MlxLm(Transformers):
    """A causal language model in MLX: what is around the steps is as in `Transformers`."""

    def __init__(self, options: MlxLmOptions | None = None) -> None:
        super().__init__(options or MlxLmOptions())  # type: ignore[arg-type]

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            devices=("mps", "cpu"),
            streams=True,
            continuous=True,
            max_batch=self._options.max_batch,
            resume="exact",
            tools=True,
        )

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

        options = self._options
        plain = tokenizer._tokenizer
        self._decoder = MlxDecoder(
            model,
            plain,
            frozenset(tokenizer.eos_token_ids),
            prefixes=options.prefixes,
            temperature=options.temperature,
            top_p=options.top_p,
            repeat_penalty=options.repeat_penalty,
        )
        text = config.get("text_config", config)
        trained = text.get("max_position_embeddings") or options.context_tokens
        self._context_tokens = min(options.context_tokens, trained)
        if self._context_tokens < options.context_tokens:
            logger.warning("context_tokens lowered to %d, which the model was trained for", trained)
        self._template = ChatTemplate(
            plain.chat_template,
            bos=plain.bos_token or "",
            eos=plain.eos_token or "",
            control_tokens=plain.all_special_tokens,
            thinking=options.thinking,
        )

    def memory_bytes(self, dtype: str) -> int:
        """Weights as they are on disk, and work space; 0 while not on this machine."""
        weights = mlx.weight_bytes(self._options.model_name)
        return weights + WORK_BYTES if weights else 0
