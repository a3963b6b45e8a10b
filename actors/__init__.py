"""The stages (VAD, turn, STT, LLM, TTS) and what connects them."""
