"""Letter-to-sound rules: how an English reader would say a word that no lexicon has.

Output is in Kokoro's American phonemes (A, I, O, W, Y are the diphthongs of day, my, go, how, boy); `british` rewrites
them.  The rules cover every letter, so no word is silent.
"""

from __future__ import annotations

import re
import unicodedata

VOWELS = "AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻᵊ"

_RULES: tuple[tuple[str, str, str, str], ...] = (
    # letters, must come before (regex, end of what was read), must follow (regex), sound
    ("tion", "", "", "ʃən"), ("ssion", "", "", "ʃən"), ("sion", "", "", "ʒən"), ("cious", "", "", "ʃəs"),
    ("tious", "", "", "ʃəs"), ("cial", "", "", "ʃəl"), ("tial", "", "", "ʃəl"), ("ture", ".", "", "ʧəɹ"),
    ("ought", "", "", "ɔt"), ("aught", "", "", "ɔt"), ("eigh", "", "", "A"), ("igh", "", "", "I"),
    ("ough", "", "", "O"), ("augh", "", "", "æf"), ("tch", "", "", "ʧ"), ("sch", "", "", "ʃ"),
    ("dge", "", "", "ʤ"), ("que", ".", "$", "k"), ("gue", ".", "$", "ɡ"), ("eau", "", "", "O"),
    ("chr", "", "", "kɹ"), ("ch", "", "", "ʧ"), ("sh", "", "", "ʃ"), ("th", "", "", "θ"), ("ph", "", "", "f"),
    ("wh", "", "", "w"), ("gh", "^", "", "ɡ"), ("gh", "", "", ""), ("ck", "", "", "k"), ("kn", "^", "", "n"),
    ("gn", "^", "", "n"), ("wr", "^", "", "ɹ"), ("ps", "^", "", "s"), ("rh", "", "", "ɹ"), ("mb", "", "$", "m"),
    ("ng", "", "$", "ŋ"), ("ng", "", "[^aeiouy]", "ŋ"), ("nk", "", "", "ŋk"), ("qu", "", "", "kw"), ("zh", "", "", "ʒ"),
    ("ts", "^", "", "ts"), ("tz", "", "", "ts"), ("sc", "", "[eiy]", "s"), ("cc", "", "[eiy]", "ks"),
    ("air", "", "", "ɛɹ"), ("are", ".", "$", "ɛɹ"), ("ear", "", "", "ɪɹ"), ("eer", "", "", "ɪɹ"),
    ("ire", "", "$", "Iəɹ"), ("oar", "", "", "ɔɹ"), ("oor", "", "", "ɔɹ"), ("ore", "", "$", "ɔɹ"),
    ("our", "", "", "ɔɹ"), ("ure", "", "$", "jʊɹ"), ("ar", "", "(?![aeiouy])", "ɑɹ"),
    ("er", "", "(?![aeiouy])", "əɹ"), ("ir", "", "(?![aeiouy])", "ɜɹ"), ("or", "", "(?![aeiouy])", "ɔɹ"),
    ("ur", "", "(?![aeiouy])", "ɜɹ"), ("yr", "", "(?![aeiouy])", "ɪɹ"),
    ("ai", "", "", "A"), ("ay", "", "", "A"), ("au", "", "", "ɔ"), ("aw", "", "", "ɔ"), ("ea", "", "", "i"),
    ("ee", "", "", "i"), ("ei", "", "", "A"), ("ey", ".", "$", "i"), ("ey", "", "", "A"), ("eu", "", "", "ju"),
    ("ew", "", "", "u"), ("ie", "", "$", "i"), ("ie", "", "", "i"), ("oa", "", "", "O"), ("oe", "", "$", "O"),
    ("oi", "", "", "Y"), ("oy", "", "", "Y"), ("oo", "", "", "u"), ("ou", "", "", "W"), ("ow", "", "$", "O"),
    ("ow", "", "", "W"), ("ue", "", "$", "u"), ("ui", "", "", "u"), ("aa", "", "", "ɑ"), ("ae", "", "", "A"),
    ("io", "", "", "iO"), ("ia", "", "", "iə"), ("iu", "", "", "iə"),
    ("a", "", "[^aeiouywx]e$", "A"), ("a", "[^aeiou]", "$", "ə"), ("a", "", "[^aeiouyr][aeiouy]", "ɑ"),
    ("a", "", "", "æ"), ("es", "[sxz]|sh|ch", "$", "ᵻz"), ("ed", "[td]", "$", "ᵻd"), ("e", "[^aeiou]", "$", ""),
    ("e", "", "[^aeiouywx][ei]$", "i"), ("e", "", "", "ɛ"), ("i", "", "[^aeiouyw]e$", "I"), ("i", "", "$", "i"),
    ("i", "", "[aou]", "i"), ("i", "", "", "ɪ"), ("o", "", "[^aeiouywx]e$", "O"), ("o", "", "$", "O"),
    ("o", "", "[^aeiouyrx][aeiouy]", "O"), ("o", "", "", "ɑ"), ("u", "", "[^aeiouy]e$", "u"),
    ("u", "", "[^aeiouyrx][aeiouy]", "u"), ("u", "", "$", "u"), ("u", "", "", "ʌ"),
    ("y", "^", "[aeiou]", "j"), ("y", "[aeiou]", "[aeiou]", "j"), ("y", "", "[^aeiouy]e$", "I"),
    ("y", "", "$", "i"), ("y", "", "", "ɪ"),
    ("b", "", "", "b"), ("ci", "", "[ao]", "ʃ"), ("c", "", "[eiy]", "s"), ("c", "", "", "k"), ("d", "", "", "d"),
    ("f", "", "", "f"), ("ge", ".", "$", "ʤ"), ("g", "", "[eiy]", "ʤ"), ("g", "", "", "ɡ"), ("h", ".", "$", ""),
    ("h", "", "", "h"), ("j", "", "", "ʤ"), ("k", "", "", "k"), ("l", "", "", "l"), ("m", "", "", "m"),
    ("n", "", "", "n"), ("p", "", "", "p"), ("q", "", "", "k"), ("r", "", "", "ɹ"), ("s", "[aeiou]", "[eiou]", "z"),
    ("s", "[bdglmnrvw]", "$", "z"), ("s", "", "", "s"), ("t", "", "", "t"), ("v", "", "", "v"), ("w", "", "", "w"),
    ("x", "^", "", "z"), ("x", "", "", "ks"), ("z", "", "", "z"),
)  # fmt: skip
_COMPILED = tuple(
    (letters, re.compile(f"(?:{before})$") if before else None, re.compile(after) if after else None, sound)
    for letters, before, after, sound in _RULES
)
_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "th", "þ": "th", "ı": "i"}
)


def plain_letters(word: str) -> str | None:
    """`word` in lower case a-z, accents taken off; None if it has letters of another script."""
    folded = unicodedata.normalize("NFKD", word.lower().translate(_LETTERS))
    bare = "".join(char for char in folded if not unicodedata.combining(char) and char != "'")
    return bare if bare.isascii() and bare.isalpha() else None


def sound_out(word: str) -> str:
    """Phonemes, with stress, of a word in lower case a-z."""
    sounds, position = "", 0
    while position < len(word):
        if position and word[position] == word[position - 1] and word[position] in "bcdfgklmnprstvz":
            position += 1
            continue
        letters, sound = _match(word, position)
        sounds, position = sounds + sound, position + len(letters)
    if not any(sound in VOWELS for sound in sounds):
        sounds += "ə"
    return stressed(sounds)


def _match(word: str, position: int) -> tuple[str, str]:
    for letters, before, after, sound in _COMPILED:
        if (
            word.startswith(letters, position)
            and (before is None or before.search(word[:position]))
            and (after is None or after.match(word[position + len(letters) :]))
        ):
            return letters, sound
    raise ValueError(
        f"no rule reads {word[position:]!r} of {word!r}: only the letters a-z can be sounded out"
    )


def stressed(sounds: str) -> str:
    """Primary stress by the shape of the word: first of two syllables, third but last of more.

    A word that ends in a vowel (as most names from other languages do) has it on the last but one.
    """
    nuclei = [
        index for index, sound in enumerate(sounds) if sound in VOWELS and sounds[index - 1 : index] != "ˈ"
    ]
    if not nuclei:
        return sounds
    open_ended = sounds[-1] in VOWELS
    at = 0 if len(nuclei) < 3 else len(nuclei) - (2 if open_ended else 3)
    if re.search(r"(?:ʃən|ʒən|ʃəs|ʃəl|iə)$", sounds) and len(nuclei) > 1:
        at = len(nuclei) - (3 if sounds.endswith("iə") and len(nuclei) > 2 else 2)
    while sounds[nuclei[at]] == "ə" and at + 1 < len(nuclei):
        at += 1
    return sounds[: nuclei[at]] + "ˈ" + sounds[nuclei[at] :]


def british(sounds: str) -> str:
    """The same word with the vowels of the b* voices: no ɹ but before a vowel, long vowels marked."""
    sounds = sounds.replace("O", "Q").replace("ɾ", "t").replace("ᵻ", "ɪ")
    sounds = re.sub(rf"ɑɹ(?![{VOWELS}ˈˌ])", "ɑː", sounds)
    sounds = re.sub(rf"ɔɹ(?![{VOWELS}ˈˌ])", "ɔː", sounds)
    sounds = re.sub(rf"ɜɹ(?![{VOWELS}ˈˌ])", "ɜː", sounds)
    sounds = re.sub(rf"([ɛɪʊ])ɹ(?![{VOWELS}ˈˌ])", r"\1ə", sounds)
    sounds = re.sub(rf"ɹ(?![{VOWELS}ˈˌ])", "", sounds)
    sounds = sounds.replace("ɑ", "ɒ").replace("ɒː", "ɑː").replace("æ", "a")
    sounds = re.sub(r"ɔ(?!ː)", "ɔː", sounds)
    sounds = re.sub(r"u(?!ː)", "uː", sounds)
    return re.sub(r"i(?!ː)(?!$|ə)", "iː", sounds)
