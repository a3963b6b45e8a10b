"""Whisper's log-mel spectrogram in numpy, so that the turn stage needs neither torch nor transformers.

Frames of 25 ms each 10 ms, a periodic Hann window, power spectrum, 80 triangular bands on Slaney's mel scale (linear
to 1 kHz, logarithmic above) of equal area, then log10 within 8 of the loudest value, shifted and scaled.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

RATE_HZ = 16_000
FFT_SAMPLES = 400
HOP_SAMPLES = 160
BANDS = 80
TOP_HZ = 8_000.0
LINEAR_HZ_PER_MEL = 200.0 / 3.0
LOG_FROM_HZ = 1_000.0
LOG_FROM_MEL = LOG_FROM_HZ / LINEAR_HZ_PER_MEL
LOG_STEP = np.log(6.4) / 27.0


def log_mel(audio: NDArray[np.float32]) -> NDArray[np.float32]:
    """float32[B, 80, n // 160] of float32[B, n] at 16 kHz, n a multiple of 160."""
    half = FFT_SAMPLES // 2
    padded = np.pad(audio, ((0, 0), (half, half)), mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, FFT_SAMPLES, axis=1)[:, :-1:HOP_SAMPLES]
    frames = frames[:, : audio.shape[1] // HOP_SAMPLES]
    power = np.abs(np.fft.rfft(frames * _window(), axis=-1)).astype(np.float32) ** 2
    bands = np.log10(np.maximum(power @ _filters(), 1e-10))
    bands = np.maximum(bands, bands.max(axis=(1, 2), keepdims=True) - 8.0)
    return np.ascontiguousarray(((bands + 4.0) / 4.0).transpose(0, 2, 1), np.float32)


@cache
def _window() -> NDArray[np.float32]:
    return np.hanning(FFT_SAMPLES + 1)[:-1].astype(np.float32)


@cache
def _filters() -> NDArray[np.float32]:
    """float32[201, 80]: the weight of each FFT bin in each band."""
    top_mel = LOG_FROM_MEL + np.log(TOP_HZ / LOG_FROM_HZ) / LOG_STEP
    mels = np.linspace(0.0, top_mel, BANDS + 2)
    logarithmic = LOG_FROM_HZ * np.exp(LOG_STEP * (mels - LOG_FROM_MEL))
    edges_hz = np.where(mels < LOG_FROM_MEL, LINEAR_HZ_PER_MEL * mels, logarithmic)
    bins_hz = np.linspace(0.0, RATE_HZ / 2, FFT_SAMPLES // 2 + 1)[:, None]
    low, centre, high = edges_hz[:-2], edges_hz[1:-1], edges_hz[2:]
    rise = (bins_hz - low) / (centre - low)
    fall = (high - bins_hz) / (high - centre)
    weights = np.maximum(0.0, np.minimum(rise, fall)) * (2.0 / (high - low))
    filters: NDArray[np.float32] = weights.astype(np.float32)
    return filters
