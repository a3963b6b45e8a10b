"""Rule 18: what is spoken is what a person would say, never the markup it was written with."""

from __future__ import annotations

import time

import pytest

from orchestration.session.speakable import speakable

PLAIN = [
    ("5 < 10", "5 < 10"),
    ("I <3 you", "I <3 you"),
    ("a < b and c > d", "a < b and c > d"),
    ("x <y and z> w", "x <y and z> w"),
    ("5 * 3 = 15", "5 * 3 = 15"),
    ("2*3 and 2**3", "2*3 and 2**3"),
    ("It costs $3.50, ~5 € or 50% & more.", "It costs $3.50, ~5 € or 50% & more."),
    ("Dr. Smith runs v1.0.0 of Node.js at 98.6°F", "Dr. Smith runs v1.0.0 of Node.js at 98.6°F"),
    ('She said "hi".', 'She said "hi".'),
    ("2020–2021, a—b, 1.5 - 2.5", "2020–2021, a—b, 1.5 - 2.5"),
    ("C# is #1", "C# is #1"),
    ("AT&T", "AT&T"),
    ("你好，世界！", "你好，世界！"),
]

MARKDOWN = [
    ("**bold** *it* ***both*** __u__ _x_", "bold it both u x"),
    ("**bold, over", "bold, over"),
    ("yes** it is", "yes it is"),
    ("~~gone~~ kept", "gone kept"),
    ("snake_case_name and __init__.py", "snake case name and init.py"),
    ("你好，**世界**！", "你好，世界！"),
    (r"\*not em\* costs \$5", "not em costs $5"),
    ("$$x$$ is ten", "x is ten"),
    ("# Head\ntext", "Head. text"),
    ("## Head ##", "Head"),
    ("### Is it?\ntext", "Is it? text"),
    ("Head\n====\ntext", "Head. text"),
    ("**Title**\ntext", "Title. text"),
    ("**Note:** text", "Note: text"),
    ("one\n\n---\n\ntwo", "one. two"),
    ("> quote\n> more", "quote more"),
    ("> > deep\ntext", "deep. text"),
    ("- milk\n- eggs\n* bread", "milk, eggs, bread"),
    ("- milk\n\n- eggs\n", "milk, eggs."),
    ("You need:\n- milk,\n- eggs.", "You need: milk, eggs."),
    ("- [ ] todo\n- [x] done", "todo, done"),
    ("* item **bold**\n  * sub", "item bold, sub"),
    ("1. one\n2) two\n**3.** three", "1. one. 2. two. 3. three"),
    ("- \n#\ntext", "text"),
    ("| a | b |\n|:--|--:|\n| 1 | 2 |", "a, b. 1, 2"),
    ("a | b\n--- | ---\n1 | 2", "a, b. 1, 2"),
    ("a line\nthat wraps", "a line that wraps"),
    ("a line\n", "a line"),
    ("Humidity: 40%\nWind: 5 km/h\n20 °C", "Humidity: 40%, Wind: 5 km/h, 20 °C"),
    ("a poem\nÉcrit\n**Bold** words", "a poem, Écrit, Bold words"),
    ("a://b ://", "ab"),
    ("one\n\ntwo\n\n", "one. two."),
    ("**one**\n\n**two**\n", "one. two."),
    ("A -> B => C → D", "A, B, C, D"),
]

CODE = [
    ("run `pip install x` now", "run pip install x now"),
    ("a ``b`c`` d", "a bc d"),
    ("before ```inline``` after", "before inline after"),
    ("Look:\n```py\nx = 1\n```\nDone.", "Look: Done."),
    ("Look:\n~~~\nx = 1\n~~~\nDone.", "Look: Done."),
    ("````\n```\nx\n```\n````\nDone.", "Done."),
    ("```py\nnever ends", ""),
]

LINKS = [
    ("See [the docs](https://x.com/a).", "See the docs."),
    ("See [the docs](https://x.com/a_(b) 'title').", "See the docs."),
    ("[l](<http://x y>)", "l"),
    ("[cut](https://x.com/very/long", "cut"),
    ("![a cat](cat.png)", "a cat"),
    ("[![badge](b.svg)](https://x.com)", "badge"),
    ("[the docs][1] and [plain] text", "the docs and plain text"),
    ("[1]: https://x.com\nHi", "Hi"),
    ("said[^1] and cited[2] here【4†source】.", "said and cited here."),
    ("https://www.example.com/path?a=b.", "example dot com."),
    ("HTTPS://EXAMPLE.COM", "EXAMPLE dot COM"),
    ("http://user@localhost:8080/x", "localhost"),
    ("(https://en.wikipedia.org/wiki/A_(b))", "(en dot wikipedia dot org)"),
    ("**https://x.com/a**", "x dot com"),
    ("<https://a.io>", "a dot io"),
    ("Visit www.docs.python.org/3/ now", "Visit docs dot python dot org now"),
    (
        "Go to example.com, or sub.example.co.uk/x!",
        "Go to example dot com, or sub dot example dot co dot uk!",
    ),
    ("Mail bob.x@example.com.", "Mail bob dot x at example dot com."),
    ("请看https://example.com/a。谢谢", "请看example dot com。谢谢"),
    ("x data:image/png;base64,iVBOR/+= y", "x y"),
]

EMOJI = [
    ("Hi 😊!", "Hi!"),
    ("a 👨‍👩‍👧‍👦 b", "a b"),
    ("a 👍🏽 b", "a b"),
    ("1️⃣ one #️⃣ two", "one two"),
    ("a 🇩🇪 b 🏴󠁧󠁢󠁥󠁮󠁧󠁿", "a b"),
    ("I ❤️ you ☀️ ✅ ⭐", "I you"),
    ("Foo™ © 2024", "Foo™ © 2024"),
    ("Foo ©️ ↔️", "Foo"),
]

HTML = [
    ("<b>x</b> H<sub>2</sub>O<br/>y", "x H2O y"),
    ("<a href=\"https://x.com\" title='t'>label</a> <div hidden>z</div>", "label z"),
    ("a<!-- note -->b <!-- open", "ab"),
    ("&amp; Q&#39;s&nbsp;x &lt;3 &bogus;", "& Q's x <3 &bogus;"),
]

NOTHING = [
    "",
    "  \n ",
    "...",
    "---",
    "* * *",
    "**",
    "__",
    "😀",
    "🎉🎉 !",
    "```\ncode\n```",
    "—",
    "<!-- x -->",
]


@pytest.mark.parametrize(("written", "spoken"), PLAIN + MARKDOWN + CODE + LINKS + EMOJI + HTML)
def test_what_is_written_is_said_without_its_markup(written: str, spoken: str) -> None:
    assert speakable(written) == spoken


@pytest.mark.parametrize("written", NOTHING)
def test_where_nothing_can_be_said_nothing_is(written: str) -> None:
    assert speakable(written) == ""


def test_list_markers_count_only_where_a_line_begins() -> None:
    assert speakable("> 5 is true", opens_line=True) == "5 is true"
    assert speakable("> 5 is true", opens_line=False) == "> 5 is true"
    assert speakable("and so on\n- milk", opens_line=False) == "and so on. milk"


@pytest.mark.parametrize(
    ("language", "spoken"),
    [("en-GB", "a dot com"), ("de", "a Punkt com"), ("fr", "a point com"), ("xx", "a dot com")],
)
def test_addresses_are_read_in_the_language_of_the_voice(language: str, spoken: str) -> None:
    assert speakable("a.com", language=language) == spoken


@pytest.mark.parametrize("piece", ["```", "~", "<b ", "<!--", "[](", "*", "a_", "-", "a.", "a@", " ", "\n- "])
def test_time_grows_with_the_length_whatever_the_text(piece: str) -> None:
    def cpu_s(chars: int) -> float:
        text = piece * (chars // len(piece))
        begin = time.process_time()
        speakable(text)
        return time.process_time() - begin

    short_s = min(cpu_s(2_000) for _ in range(3))
    assert cpu_s(40_000) < 20 * 10 * max(short_s, 1e-3)
