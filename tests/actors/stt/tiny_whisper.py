"""A Whisper of random weights and 64 tokens: the real classes, in milliseconds."""

from typing import Any

from actors.stt.vocabulary import Vocabulary
from actors.stt.whisper import Whisper, WhisperOptions

EOT, SOT, EN, DE, TRANSCRIBE, TRANSLATE, PREVIOUS, NO_SPEECH, NO_TIMESTAMPS = range(50, 59)
VOCABULARY = Vocabulary(
    eot=EOT,
    sot=SOT,
    no_timestamps=NO_TIMESTAMPS,
    no_speech=NO_SPEECH,
    previous=PREVIOUS,
    decode=lambda tokens: "".join(f" w{token}" for token in tokens),
    encode=lambda text: [len(word) for word in text.split()],
    suppress=(3, EOT),
    begin_suppress=(4, EOT),
    languages={"en": EN, "de": DE},
    tasks={"transcribe": TRANSCRIBE, "translate": TRANSLATE},
)


def model() -> Any:
    import torch
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    torch.manual_seed(0)
    config = WhisperConfig(
        vocab_size=64,
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_target_positions=64,
        init_std=0.3,
        bos_token_id=EOT,
        eos_token_id=EOT,
        pad_token_id=EOT,
        decoder_start_token_id=SOT,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    network = WhisperForConditionalGeneration(config).eval()
    generation = network.generation_config
    generation.is_multilingual = True
    generation.lang_to_id = {"<|en|>": EN, "<|de|>": DE}
    generation.task_to_id = {"transcribe": TRANSCRIBE, "translate": TRANSLATE}
    generation.no_timestamps_token_id = NO_TIMESTAMPS
    generation.prev_sot_token_id = PREVIOUS
    return network


def backend(options: WhisperOptions | None = None, int8: bool = False) -> Whisper:
    from transformers import WhisperFeatureExtractor

    whisper = Whisper(options)
    whisper.install(model(), VOCABULARY, WhisperFeatureExtractor(), "cpu", int8)
    return whisper
