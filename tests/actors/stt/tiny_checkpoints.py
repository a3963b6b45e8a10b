"""Checkpoints of random weights, saved as the hub has them: the real classes, in milliseconds."""

import string
from pathlib import Path
from typing import Any

ASR_TEXT = "<asr_text>"
"""Parts the language from the text in what Qwen3-ASR writes; an ordinary token."""
LETTERS = [*string.ascii_letters, "▁"]


def tokenizer(cls: Any, specials: list[str], folder: Path, **more: Any) -> Any:
    """A tokenizer of letters, `▁` standing for a space; special tokens come first."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    vocabulary = {token: number for number, token in enumerate([*specials, *LETTERS])}
    built = Tokenizer(models.BPE(vocabulary, [], unk_token=specials[0]))
    built.pre_tokenizer = pre_tokenizers.Metaspace()
    built.decoder = decoders.Metaspace()
    built.add_special_tokens([special for special in specials if special != ASR_TEXT])
    built.add_tokens([special for special in specials if special == ASR_TEXT])
    made = cls(tokenizer_object=built, unk_token=specials[0], pad_token=specials[1], **more)
    made.save_pretrained(folder)
    return made


def moonshine(folder: Path) -> Path:
    import torch
    from transformers import (
        MoonshineConfig,
        MoonshineForConditionalGeneration,
        PreTrainedTokenizerFast,
        Wav2Vec2FeatureExtractor,
        Wav2Vec2Processor,
    )

    torch.manual_seed(0)
    config = MoonshineConfig(
        vocab_size=4 + len(LETTERS),
        hidden_size=32,
        intermediate_size=32,
        encoder_num_hidden_layers=1,
        decoder_num_hidden_layers=1,
        encoder_num_attention_heads=2,
        decoder_num_attention_heads=2,
        initializer_range=0.5,
        bos_token_id=2,
        eos_token_id=3,
        decoder_start_token_id=2,
        pad_token_id=1,
    )
    MoonshineForConditionalGeneration(config).save_pretrained(folder)
    features = Wav2Vec2FeatureExtractor(do_normalize=False, return_attention_mask=True)
    words = tokenizer(PreTrainedTokenizerFast, ["<unk>", "<pad>", "<s>", "</s>"], folder)
    Wav2Vec2Processor(features, words).save_pretrained(folder)
    return folder


def parakeet(folder: Path, kind: str = "tdt") -> Path:
    import torch
    from transformers import (
        ParakeetCTCConfig,
        ParakeetEncoderConfig,
        ParakeetFeatureExtractor,
        ParakeetForCTC,
        ParakeetForTDT,
        ParakeetProcessor,
        ParakeetTDTConfig,
        ParakeetTokenizer,
    )

    torch.manual_seed(0)
    encoder = ParakeetEncoderConfig(
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        subsampling_conv_channels=8,
        num_mel_bins=80,
    )
    specials = ["<unk>", "<pad>", "<blank>"]
    size = len(specials) + len(LETTERS)
    if kind == "ctc":
        config = ParakeetCTCConfig(encoder_config=encoder, vocab_size=size, pad_token_id=1)
        ParakeetForCTC(config).save_pretrained(folder)
    else:
        config = ParakeetTDTConfig(
            encoder_config=encoder,
            vocab_size=size,
            blank_token_id=2,
            pad_token_id=1,
            decoder_hidden_size=32,
            num_decoder_layers=1,
        )
        model = ParakeetForTDT(config)
        model.generation_config.decoder_start_token_id = 2
        model.generation_config.suppress_tokens = [size + index for index in range(len(config.durations))]
        model.save_pretrained(folder)
    words = tokenizer(ParakeetTokenizer, specials, folder)
    ParakeetProcessor(ParakeetFeatureExtractor(), words, decoder_type=kind).save_pretrained(folder)
    return folder


TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'audio' %}<|audio_start|><|audio_pad|><|audio_end|>"
    "{% else %}{{ part['text'] }}{% endif %}{% endfor %}"
    "{% if not loop.last %}<|im_end|>\n{% endif %}{% endfor %}"
)


def qwen3_asr(folder: Path) -> Path:
    import torch
    from transformers import (
        PreTrainedTokenizerFast,
        Qwen3ASRConfig,
        Qwen3ASRFeatureExtractor,
        Qwen3ASRForConditionalGeneration,
        Qwen3ASRProcessor,
    )

    torch.manual_seed(0)
    specials = [
        "<unk>",
        "<pad>",
        "<|im_start|>",
        "<|im_end|>",
        "<|audio_pad|>",
        "<|audio_start|>",
        "<|audio_end|>",
        ASR_TEXT,
    ]
    words = tokenizer(
        PreTrainedTokenizerFast,
        specials,
        folder,
        extra_special_tokens={
            "audio_token": "<|audio_pad|>",
            "audio_bos_token": "<|audio_start|>",
            "audio_eos_token": "<|audio_end|>",
        },
    )
    config = Qwen3ASRConfig(
        audio_config={
            "encoder_layers": 1,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 32,
            "d_model": 32,
            "output_dim": 32,
            "downsample_hidden_size": 8,
            "initializer_range": 0.5,
        },
        text_config={
            "hidden_size": 32,
            "intermediate_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 16,
            "vocab_size": len(specials) + len(LETTERS),
            "initializer_range": 0.5,
        },
        initializer_range=0.5,
        audio_token_id=4,
        pad_token_id=1,
        eos_token_id=3,
    )
    Qwen3ASRForConditionalGeneration(config).save_pretrained(folder)
    processor = Qwen3ASRProcessor(Qwen3ASRFeatureExtractor(), words, chat_template=TEMPLATE)
    processor.save_pretrained(folder)
    return folder
