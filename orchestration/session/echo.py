"""Does the microphone hear the machine itself?"""

from __future__ import annotations

from difflib import SequenceMatcher

from orchestration.session.words import plain_words

FEWEST_WORDS = 3
"""Fewer words prove nothing: a person may well say "the weather", too."""
FEW_WORDS = 6
"""Fewer than these are in every story, such as "what is the": all but one have to be its own in a row."""
SHARE = 0.6
"""Words that have to be the machine's, in its order: a recognizer mishears some."""
RECENT_WORDS = 60
"""What the machine said before these is too long ago to be heard now."""


def is_echo(heard: str, said: str) -> bool:
    """Whether `heard` is what the machine has `said`, give or take some words."""
    words, own = plain_words(heard), plain_words(said)[-RECENT_WORDS:]
    if len(words) < FEWEST_WORDS:
        return False
    blocks = SequenceMatcher(None, words, own, autojunk=False).get_matching_blocks()
    if len(words) < FEW_WORDS:
        return max(block.size for block in blocks) >= max(FEWEST_WORDS, len(words) - 1)
    return sum(block.size for block in blocks) >= SHARE * len(words)
