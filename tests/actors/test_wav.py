import io
import wave

from actors.wav import wav


def test_a_wav_holds_its_samples_and_how_they_are_to_be_read() -> None:
    pcm = b"\1\0\2\0"
    with wave.open(io.BytesIO(wav(pcm, 16_000))) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 16_000)
        assert file.readframes(9) == pcm
