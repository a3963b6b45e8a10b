"""GGUF models through llama.cpp (xllamacpp): several slots decode together, each keeps its prompt for the next turn."""

from __future__ import annotations

import json
import queue
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from actors.backend import Batch, Capabilities, Key
from actors.batch import warm_up
from actors.llm import gguf
from actors.llm.answer import Answer, Segment
from actors.llm.llama_socket import SocketTokenizer, Tokenizer
from actors.llm.local import LocalOptions, Result, trained_for, warm_up_requests
from actors.llm.model_files import local_path, model_path
from actors.llm.prompt import BadPrompt, ChatTemplate, continued
from actors.llm.tools import BadToolChoice
from actors.messages import Failed, LlmRequest

PREFILL_TOKENS = 64
"""Prompt tokens read in one step.  A cancel waits for the step that runs, and so do the other slots."""
WORK_BYTES = 64 << 20
"""Compute buffers and the program's own memory, roughly."""


@dataclass(frozen=True)
class LlamaCppOptions(LocalOptions):
    """How a GGUF model is loaded and asked."""

    model_name: str = "smollm2-135m-instruct-q8-gguf"
    """An asset, the path of a .gguf file, or `owner/repository:file.gguf` on the Hugging Face hub."""
    slots: int = 4
    """Answers decoded together; each may have `context_tokens` of its own."""
    gpu_layers: int = -1
    """Layers put on the GPU; -1: all.  Counts only on a GPU."""


class LlamaCpp:
    """A GGUF model.  Calls are made from one thread; a thread a slot waits for llama.cpp's pieces."""

    def __init__(self, options: LlamaCppOptions) -> None:
        self._options = options
        self._server: Any = None

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            devices=("cuda", "mps", "cpu"),
            streams=True,
            continuous=True,
            max_batch=self._options.slots,
            resume="exact",
            tools=True,
        )

    def load(self, device: str, dtype: str, threads: int) -> None:
        """Load the model onto `device` ("cpu", "cuda:0", "cuda:0+cuda:1", "mps").

        The file decides the weights' number format: `dtype` must be "auto".
        Raises `ValueError` for another, `NotGguf` for a file that is none, and `RuntimeError` when llama.cpp refuses.
        """
        if dtype != "auto":
            raise ValueError(f"dtype {dtype!r} was asked for, but a GGUF file decides its own; choose auto.")
        import xllamacpp

        model = gguf.read(model_path(self._options.model_name))
        context_tokens = trained_for(self._options.context_tokens, model.trained_context_tokens)
        template = ChatTemplate(
            model.chat_template,
            bos=model.token("bos"),
            eos=model.token("eos"),
            control_tokens=model.control_tokens,
            thinking=self._options.thinking,
        )
        folder = tempfile.mkdtemp(prefix="s2s-llama-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        parameters = self._parameters(xllamacpp, model.path, context_tokens, device, threads)
        # llama.cpp always opens its HTTP port; a socket in a folder of our own keeps it to this user.
        parameters.hostnames = [f"{folder}/llama.sock"]
        self.use(
            xllamacpp.Server(parameters), SocketTokenizer(f"{folder}/llama.sock"), template, context_tokens
        )

    def use(self, server: Any, tokenizer: Tokenizer, template: ChatTemplate, context_tokens: int) -> None:
        """Work with a server (`handle_completions`) that is running already."""
        self._server, self._tokenizer, self._template = server, tokenizer, template
        self._context_tokens = context_tokens
        self._pool = ThreadPoolExecutor(self._options.slots, thread_name_prefix="llama-slot")

    def _parameters(self, xllamacpp: Any, path: Path, context_tokens: int, device: str, threads: int) -> Any:
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(path)
        parameters.n_parallel = self._options.slots
        parameters.n_ctx = context_tokens * self._options.slots
        parameters.n_batch = parameters.n_ubatch = PREFILL_TOKENS
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
        # Spinning threads would take the cores from the stages beside.
        parameters.cpuparams.poll = parameters.cpuparams_batch.poll = 0
        parameters.cache_ram_mib = 0
        parameters.verbosity = -1
        parameters.ui = False
        parameters.warmup = False
        if device == "cpu":
            parameters.n_gpu_layers = 0
            # llama.cpp's flash attention is the slower one on a CPU: 10 % of a token at 350 tokens of context.
            parameters.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
            return parameters
        _require_gpu(xllamacpp, device)
        parameters.n_gpu_layers = self._options.gpu_layers if self._options.gpu_layers >= 0 else 999
        several = "+" in device
        mode = xllamacpp.llama_split_mode
        parameters.split_mode = mode.LLAMA_SPLIT_MODE_LAYER if several else mode.LLAMA_SPLIT_MODE_NONE
        if not several:
            parameters.main_gpu = int(device.partition(":")[2] or 0)
        return parameters

    def warmup(self) -> None:
        """Run prompt, decoding, a resumed answer and a forced call once."""
        for request in warm_up_requests():
            warm_up(self.generate, request)

    def memory_bytes(self, dtype: str) -> int:
        """The file's size, the slots' keys and values, and work space; 0 while the file is not on this machine."""
        path = local_path(self._options.model_name)
        if path is None:
            return 0
        context = self._options.context_tokens * self._options.slots
        return path.stat().st_size + gguf.read(path).kv_bytes_per_token() * context + WORK_BYTES

    def generate(self, batch: Batch[LlmRequest]) -> Iterator[tuple[Key, Result]]:
        """Answer requests; others may join while a slot is free."""
        events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        running: dict[Key, _Running] = {}
        batch.on_change(lambda: events.put(_Event(None)))
        try:
            while True:
                # A cancelled answer's slot holds the prompt that the next one goes on from: wait for it.
                ending = any(batch.cancelled(key) for key in running)
                for key, request in batch.take(0 if ending else self._options.slots - len(running)):
                    try:
                        answer = self._answer(request)
                    except (BadPrompt, BadToolChoice) as error:
                        yield key, Failed(f"LLM: {error}")
                        continue
                    if answer.done:
                        yield key, answer.done
                        continue
                    running[key] = self._start(key, request, answer, batch, events)
                if not running:
                    return
                event = events.get()
                job = running.get(event.key) if event.key is not None else None
                if job is None or event.key is None:
                    continue
                for result in self._handle(job, event):
                    if not batch.cancelled(event.key):
                        yield event.key, result
                if event.ended:
                    del running[event.key]
                    if not batch.cancelled(event.key) and not job.failed and not job.answer.done:
                        running[event.key] = self._start(event.key, job.request, job.answer, batch, events)
        finally:
            batch.on_change(None)
            for job in running.values():
                job.stop = True
            for job in running.values():
                job.future.result()

    def _answer(self, request: LlmRequest) -> Answer:
        return Answer(
            request, self._template, self._tokenizer.count, self._context_tokens, self._options.max_tokens
        )

    def _start(
        self,
        key: Key,
        request: LlmRequest,
        answer: Answer,
        batch: Batch[LlmRequest],
        events: queue.SimpleQueue[_Event],
    ) -> _Running:
        job = _Running(request, answer)
        segment = answer.segment()
        prompt = self._tokenizer.encode(segment.prompt)
        ids = continued(prompt, segment.prefix, segment.prompt, self._tokenizer.encode)
        job.prompt_tokens = len(prompt)
        body = json.dumps(self._body(request, segment, ids))

        def on_piece(text: str) -> bool:
            events.put(_Event(key, json.loads(text)))
            return job.stop or batch.cancelled(key)

        def decode() -> None:
            try:
                self._server.handle_completions(body, on_piece)
            except Exception as error:
                events.put(_Event(key, {"error": {"message": str(error)}}))
            finally:
                events.put(_Event(key, ended=True))

        job.future = self._pool.submit(decode)
        return job

    def _body(self, request: LlmRequest, segment: Segment, ids: list[int]) -> dict[str, Any]:
        options = self._options
        body: dict[str, Any] = {
            "prompt": ids,
            "stream": True,
            "return_progress": True,
            "timings_per_token": True,
            "cache_prompt": True,
            "max_tokens": segment.max_tokens,
            "temperature": options.temperature if request.temperature is None else request.temperature,
            "top_p": options.top_p,
            "top_k": 0,
            "min_p": 0.0,
            "seed": (segment.seed + segment.position) % (1 << 32),
            "repeat_penalty": options.repeat_penalty if segment.schema is None else 1.0,
        }
        if segment.schema is not None:
            body["json_schema"] = segment.schema
        return body

    def _handle(self, job: _Running, event: _Event) -> Iterator[Result]:
        """Results of one thing that llama.cpp said."""
        if job.stop and not event.ended:
            return
        if event.ended:
            if not job.failed:
                yield from job.answer.end_segment(job.reason)
                if job.answer.done:
                    yield job.answer.done
            return
        piece = event.piece
        if "choices" not in piece:
            job.failed = job.stop = True
            error = piece.get("error", piece)
            yield Failed(f"LLM: llama.cpp refused the request: {error.get('message', error)}")
            return
        if "prompt_progress" in piece:
            job.answer.began(job.prompt_tokens, int(piece["prompt_progress"]["cache"]))
            return
        choice = piece["choices"][0]
        if choice["finish_reason"]:
            job.reason = "length" if choice["finish_reason"] == "length" else "stop"
        decoded = int(piece.get("timings", {}).get("predicted_n", job.decoded))
        if choice["text"] or decoded > job.decoded:
            yield from job.answer.feed(choice["text"], decoded - job.decoded)
            job.decoded = decoded
        job.stop = job.stop or not job.answer.wants_more


class _Running:
    """A segment that a slot decodes."""

    def __init__(self, request: LlmRequest, answer: Answer) -> None:
        self.request = request
        self.answer = answer
        self.future: Future[None]
        self.prompt_tokens = 0
        self.decoded = 0
        """Tokens of this segment that have come out."""
        self.reason: Literal["stop", "length"] = "stop"
        self.stop = False
        """Read by the slot's thread: nothing more of this segment is wanted."""
        self.failed = False


@dataclass(frozen=True)
class _Event:
    key: Key | None
    """None: the batch changed."""
    piece: dict[str, Any] = field(default_factory=dict)
    ended: bool = False


def _require_gpu(xllamacpp: Any, device: str) -> None:
    found = [str(info["name"]) for info in xllamacpp.get_device_info()]
    if all(name.startswith("CPU") for name in found):
        raise RuntimeError(
            f"Device {device} was asked for, but this xllamacpp is built for {', '.join(found)} only: "
            "install its CUDA, ROCm or Metal wheel, or choose cpu."
        )
