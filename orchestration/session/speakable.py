"""Written text made speakable: markdown, HTML, code, links and emoji are turned into what a person says."""

from __future__ import annotations

import enum
import html
import re

# "example.com" and "me@example.com" are read with these words, by language (ISO 639-1).
_DOT_AND_AT = {
    "en": ("dot", "at"),
    "de": ("Punkt", "at"),
    "es": ("punto", "arroba"),
    "fr": ("point", "arobase"),
    "it": ("punto", "chiocciola"),
    "nl": ("punt", "at"),
    "pl": ("kropka", "małpa"),
    "pt": ("ponto", "arroba"),
    "ru": ("точка", "собака"),
    "ja": ("ドット", "アット"),
    "ko": ("닷", "골뱅이"),
    "zh": ("点", "艾特"),
}

_FENCE = re.compile(
    r"(?<!`)(`{3,}+)[^`\n]*\n.*?(?:\1`*|\Z)|^[ \t]*(~{3,}+)[^\n]*\n.*?(?:\2~*|\Z)", re.DOTALL | re.MULTILINE
)

_INLINE_TAGS = (
    "a|abbr|b|big|cite|code|del|em|emphasis|font|i|ins|kbd|mark|prosody|q|s|samp|say-as|small|span|strike"
    "|strong|sub|sup|tt|u|var|voice"
)
_BLOCK_TAGS = (
    "article|aside|audio|blockquote|body|br|break|button|center|dd|details|div|dl|dt|figcaption|figure"
    "|footer|form|h[1-6]|head|header|hr|html|iframe|img|input|label|li|link|main|meta|nav|ol|option|p|pre|script"
    "|section|select|source|speak|style|summary|svg|table|tbody|td|textarea|tfoot|th|thead|title|tr|ul|video"
)
_ATTRIBUTES = r"""(?:\s+[\w:-]+(?:\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>]+))?)*\s*/?"""
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_INLINE_TAG = re.compile(rf"</?(?:{_INLINE_TAGS}){_ATTRIBUTES}>", re.IGNORECASE)
_BLOCK_TAG = re.compile(rf"</?(?:{_BLOCK_TAGS}){_ATTRIBUTES}>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]\w{1,30});")

_LABEL = r"\[([^\[\]]{0,300})\]"
_TARGET = (
    r"""\((?:<[^<>\n]{0,300}>|[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+["'][^"'\n]{0,300}["'])?\s*(?:\)|\Z)"""
)
_LINK = re.compile(rf"!?{_LABEL}(?:{_TARGET}|\[[^\[\]]{{0,100}}\])")
_FOOTNOTE = re.compile(r"(?<=\S)\[\^?\d{1,3}\]|\[\^[^\[\]\s]{1,40}\]|【[^【】\n]{0,60}】")
_DEFINITION = re.compile(r"^ {0,3}\[[^\[\]\n]{1,100}\]:[ \t]*\S[^\n]*$", re.MULTILINE)

_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"
_BARE_TLDS = "com|org|net|edu|gov|io|ai|dev|app|info|biz|co|uk|eu|de|fr|ch|nl|jp|cn|kr|ca|au|xyz|tv"
_BARE_DOMAIN = rf"(?:[A-Za-z0-9-]{{1,63}}\.){{1,4}}(?:{_BARE_TLDS}|{_BARE_TLDS.upper()})"
_PATH = r"""(?:[/?#:](?:[!-'*-~]|\([!-'*-~]*\))*(?<![.,!?;:"'`*\]}>]))?/?"""
_URL = re.compile(
    rf"<?(?:(?:https?|ftp|wss?)://(?:[\w.~-]{{1,64}}@)?(?:www\.)?|(?<![\w.@/-])www\.)({_HOST}){_PATH}>?",
    re.IGNORECASE,
)
_EMAIL = re.compile(rf"<?(?:mailto:)?(?<![\w.+-])([\w.+-]{{1,64}})@({_HOST}\.[A-Za-z]{{2,24}})\b>?")
_DOMAIN = re.compile(rf"(?<![\w.@/-])({_BARE_DOMAIN})(?![\w@-]|\.\w){_PATH}")
_DATA_URI = re.compile(r"data:[\w/+.-]+;base64,[\w+/=]*")

_EMOJI_BASE = (
    "\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u231a\u231b\u2328\u23cf\u23e9-\u23fa\u25aa\u25ab\u25b6\u25c0"
    "\u25fb-\u25fe\u2934\u2935\u3030\u303d\u3297\u3299\u203c\u2049\u2139\u24c2"
)
_EMOJI = re.compile(
    rf"[0-9#*]\ufe0f?\u20e3|[{_EMOJI_BASE}©®™\u2190-\u21ff]\ufe0f|[{_EMOJI_BASE}\ufe0e\ufe0f\u20e3\u200d\U000e0020-\U000e007f]"
)
_ARROW = re.compile(r"-{1,3}>|={1,3}>|[\u2190-\u21ff]")

_QUOTE = re.compile(r"(?:>[ \t]?)+")
_HEADING = re.compile(r"#{1,6}(?:[ \t]+|$)")
_BULLET = re.compile(r"[-*+•‣◦▪●][ \t]+(?:\[[ xX]\][ \t]+)?")
_NUMBER = re.compile(r"[*_]{0,3}(\d{1,3})[.)][*_]{0,3}[ \t]+")
_BOLD_LINE = re.compile(r"(\*\*|__)[^*_]+\1:?")
_CELL_BORDER = re.compile(r"\|[\s|]*")
_RULE_CHARACTERS = frozenset("-=*_|:+ \t\r")

_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_STARS = re.compile(r"(?<=\d)\*{1,2}(?=\d)|(?<=[\w)] )\*(?= [\w(])|(\*+)")
_UNDERSCORES = re.compile(r"(?<=[^\W_])_+(?=[^\W_])|(_+)")
_MARKUP = re.compile(r"`+|~~+|://|\$\$|[\[\]]|[\u200b\u2060\ufeff\u00ad]")
_SPACE_BEFORE_STOP = re.compile(r" ([,.!?;:])(?=\s|$)")
_ENDS_WITH_PAUSE = tuple(".,!?;:…。．！？、，；：،؛؟।—–")
_CLOSERS = "\"'”’)»」』）*_"


def speakable(text: str, *, language: str = "en", opens_line: bool = True) -> str:
    """What is said for `text`; "" where there is nothing to say.

    `text` is visible text (see `VisibleText`), whole or one clause of it: a piece may begin or end inside
    emphasis. `opens_line` tells whether it begins at the beginning of a line, where list, heading and quote
    markers count. Code blocks give nothing, inline code its content, a link its label, an address its host.
    """
    text = _FENCE.sub("\n", text)
    text = _COMMENT.sub("", text)
    text = _BLOCK_TAG.sub(" ", _INLINE_TAG.sub("", text))
    text = _DEFINITION.sub("", text)
    text = _DATA_URI.sub("", text)
    text = _LINK.sub(r"\1", _LINK.sub(r"\1", text))
    text = _FOOTNOTE.sub("", text)
    text = _addresses(text, language)
    text = _ENTITY.sub(lambda found: html.unescape(found[0]), text)
    text = _ARROW.sub(", ", _EMOJI.sub(" ", text))
    text = _lines(text, opens_line)
    text = _ESCAPE.sub(r"\1", text)
    text = _STARS.sub(lambda found: "" if found[1] else found[0], text)
    text = _UNDERSCORES.sub(lambda found: "" if found[1] else " ", text)
    text = _MARKUP.sub("", text)
    text = _SPACE_BEFORE_STOP.sub(r"\1", " ".join(text.split()))
    return text.lstrip(",;: ") if any(char.isalnum() for char in text) else ""


def _addresses(text: str, language: str) -> str:
    dot, at = _DOT_AND_AT.get(language.split("-")[0].lower(), _DOT_AND_AT["en"])

    def host(name: str) -> str:
        return name.replace(".", f" {dot} ")

    text = _URL.sub(lambda found: host(found[1]), text)
    text = _EMAIL.sub(lambda found: f"{host(found[1])} {at} {host(found[2])}", text)
    return _DOMAIN.sub(lambda found: host(found[1]), text)


class _Kind(enum.Enum):
    """What a line is, for what is said between it and its neighbours."""

    TEXT = enum.auto()
    QUOTE = enum.auto()
    ITEM = enum.auto()
    BLOCK = enum.auto()


def _lines(text: str, opens_line: bool) -> str:
    """Lines joined as speech: wrapped text by a space, lines and items by a comma, blocks by a full stop."""
    said = ""
    before, apart = _Kind.TEXT, False
    lines = text.split("\n")
    for number, line in enumerate(lines):
        line = line.strip()
        kind = _Kind.TEXT
        if _RULE_CHARACTERS.issuperset(line):
            line = ""
        elif number or opens_line:
            line, kind = _unmark(line)
        if not line:
            apart = apart or number < len(lines) - 1
            continue
        if said and (kind is not before or kind is _Kind.BLOCK or (apart and kind is not _Kind.ITEM)):
            said = _pause(said, ".")
        elif said and (kind is _Kind.ITEM or _begins_anew(line)):
            said = _pause(said, ",")
        said = f"{said} {line}"
        before, apart = kind, False
    ended = len(lines) > 1 and not lines[-1].strip()
    is_block = before is _Kind.BLOCK or before is _Kind.ITEM
    return _pause(said, ".") if said and ended and (apart or is_block) else said


def _begins_anew(line: str) -> bool:
    """Whether a line looks like one of its own and not like the rest of a wrapped one."""
    first = next((char for char in line if char.isalnum()), "")
    return first.isupper() or first.isdigit()


def _unmark(line: str) -> tuple[str, _Kind]:
    """The line without its block markers, and its kind."""
    quoted = _QUOTE.match(line)
    if quoted:
        line = line[quoted.end() :]
    if marker := _HEADING.match(line):
        return line[marker.end() :].rstrip("# \t"), _Kind.BLOCK
    if marker := _BULLET.match(line):
        return line[marker.end() :], _Kind.ITEM
    if marker := _NUMBER.match(line):
        return f"{marker[1]}. {line[marker.end() :]}", _Kind.BLOCK
    if "|" in line:
        return _CELL_BORDER.sub(", ", line.strip("| \t")), _Kind.BLOCK
    if _BOLD_LINE.fullmatch(line):
        return line, _Kind.BLOCK
    return line, _Kind.QUOTE if quoted else _Kind.TEXT


def _pause(said: str, mark: str) -> str:
    if said.rstrip(_CLOSERS).endswith(_ENDS_WITH_PAUSE):
        return said
    bare = said.rstrip("*_")
    return bare + mark + said[len(bare) :]
