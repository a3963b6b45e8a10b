"""Rule 19: an answer is cut into clauses where a speaker would pause, and the first one comes early."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestration.session.borders import Border, border_after
from orchestration.session.clauses import Clause, ClauseOptions, ClauseStream
from orchestration.session.visible import VisibleText


def clauses_of(deltas: list[str] | str, options: ClauseOptions | None = None) -> list[Clause]:
    """The clauses of a message; a string is fed one character a delta."""
    stream = ClauseStream(options)
    clauses = [clause for delta in deltas for clause in stream.feed(delta)]
    return clauses + stream.finish()


def texts(deltas: list[str] | str, options: ClauseOptions | None = None) -> list[str]:
    return [clause.text for clause in clauses_of(deltas, options)]


def spoken(raw: str) -> list[str]:
    return [clause.spoken for clause in clauses_of(raw) if clause.spoken]


SPLIT = [
    "Hello! |How can I help you today?",
    "Well, of course, |I can do that for you right away. |What is the name of the city?",
    "Yes. The train leaves from platform nine.",
    "Sure thing! |It is late. I am going home now. |Good night to all of you!",
    "Here is the plan: |we go home now.",
    "I went there yesterday — |and it was closed.",
    "One thing matters here; |the others do not.",
    "Is that so?! |Then let us go home.",
    "He left early (by bus.) |Then it rained.",
    "That was **all.** |Then it rained.",
    "Well... what do you mean?",
    "I am not so sure... |What do you mean?",
    "That is no. |Then we go home.",
    "He came in at 5 p.m. |Then he left.",
    "He came in at 5 p.m. |It's late.",
    "They live in the U.S. |The house is big.",
    "We sell pears etc. |You can buy them.",
    "He said «why?» to me.",
    "It is 42. |What else is there?",
    "It is 1234. |Great, let us go.",
    "你好！|我是你的助手，很高兴认识你。|今天天气很好，我们去公园吧。",
    "她说：“你好。”|然后她就走了。",
    '她说"你好。"|然后她就走了。',
    "好的。！|好的好的好的好。?|好的好的好的。",
    "好的好的，|我们一起去公园。",
    "今天是1，000天。",
    "嗯嗯嗯嗯……|我想想看吧。",
    "これは本当ですか？！|はい、本当です。",
    "هل أنت بخير؟ |نعم أنا بخير.",
    "क्या हाल है। |मैं ठीक हूँ।",
    "请看https://example.com/a.b。|谢谢你的来信。",
]

WHOLE = [
    "Dr. Smith",
    "Mr. and Mrs. Jones met Prof. Lee at St. Mary",
    "I said dr. smith is in",
    "See Fig. 3 and No. 5 in vol. 2 here",
    "The U.S. Army has it",
    "J. R. R. Tolkien wrote it",
    "J. A. Smith wrote it",
    "It is 3.14 or $3.50 at 98.6°F in v1.0.0 today",
    "At 10:30 a.m. Monday we meet",
    "It opens at 9 a.m. and closes at 5 p.m. daily",
    "Go to example.com or www.example.com/a?b=c.d now",
    "Fruit e.g. apples or i.e. pears",
    "Fruit e.g., apples",
    "Acme Inc. CEO steps down",
    "Well so...yes",
    "am 3. Mai in Berlin",
    "So a != b and c ??d",
    "Look `a. B! c? d` here",
    "The [docs. Now! Yes, really](https://x.com/a!b?c.d) here",
    'A <a href="x" title="So. What! Now, then">b</a> c',
    "- 1. item",
    "1. Wash",
    "1) Wash",
    "1,000,000 people",
]


@pytest.mark.parametrize("marked", SPLIT)
def test_text_is_cut_where_a_sentence_or_the_first_clause_ends(marked: str) -> None:
    assert texts(marked.replace("|", "")) == marked.split("|")


@pytest.mark.parametrize("text", WHOLE)
def test_text_is_never_cut_inside_what_belongs_together(text: str) -> None:
    assert texts(text, ClauseOptions(first_min_chars=3, min_chars=1)) == [text]


@pytest.mark.parametrize(
    ("word", "border"),
    [
        ("home", Border.WORD),
        ("the", Border.WEAK),
        ("**", Border.WEAK),
        ("12", Border.WEAK),
        ("--", Border.COMMA),
        ("home,", Border.COMMA),
        ("好，", Border.COMMA),
        ("home.", Border.SENTENCE),
        (".", Border.SENTENCE),
        ("好。", Border.SENTENCE),
        ('home."', Border.UNLESS_LOWER),
        ("so…", Border.UNLESS_LOWER),
        ("(Dr.", Border.GLUED),
        ("Gen.", Border.GLUED),
        ("gen.", Border.SENTENCE),
        ("p.", Border.IF_STARTER),
        ("no.", Border.UNLESS_DIGIT),
    ],
)
def test_the_border_after_a_word(word: str, border: Border) -> None:
    assert border_after(word, opens_line=False) is border


@pytest.mark.parametrize("word", ["-", "##", ">", "1.", "**2.**", "3)", "—"])
def test_a_marker_at_the_beginning_of_a_line_stays_with_its_line(word: str) -> None:
    assert border_after(word, opens_line=True) is Border.GLUED


def test_the_first_clause_comes_at_its_comma_and_not_before_the_next_character() -> None:
    stream = ClauseStream()
    assert stream.feed("Well, of course,") == []
    assert stream.feed(" ") == [Clause("Well, of course, ", "Well, of course,")]


def test_a_sentence_end_waits_for_the_character_that_decides_it() -> None:
    stream = ClauseStream()
    assert stream.feed("It is about version 3.") == []
    assert stream.feed("5 of the thing.") == []
    assert [clause.text for clause in stream.feed("\n")] == ["It is about version 3.5 of the thing.\n"]


def test_later_clauses_grow() -> None:
    text = "Well of course, " + "and so we went there, " * 30
    lengths = [len(clause) for clause in texts(text)]
    assert lengths[0] < lengths[1] < lengths[2]
    assert max(lengths) <= 200


@pytest.mark.parametrize(
    "fragment", ["o", "Bye", "Hello. Ok", "5 p.m. Then", "and then the", "a `b", "[x", "<thi", "。"]
)
def test_the_last_fragment_always_comes_out(fragment: str) -> None:
    stream = ClauseStream()
    before = stream.feed("Here is the thing that I said. " + fragment)
    assert "".join(c.text for c in before + stream.finish()) == "Here is the thing that I said. " + fragment
    assert stream.finish() == []


LONG = (
    "so this is a long text without any punctuation that goes on and on because the speaker does not like to stop and"
    " the model just keeps writing more and more words until somebody finally decides to cut it at a natural place"
)


def test_a_long_text_without_punctuation_is_cut_before_a_conjunction() -> None:
    cut = texts(LONG)
    assert [text.split()[0] for text in cut[1:]] == ["because"]


def test_a_long_text_without_conjunctions_is_cut_between_words_not_after_an_article() -> None:
    cut = texts("we saw the green hill near the quiet lake " * 12)
    assert len(cut) > 3
    for text in cut:
        assert text.endswith(" ") and text.split()[-1] not in ("the", "near the")
        assert len(text) <= 185


def test_numbers_are_cut_between_numbers() -> None:
    cut = texts(" ".join(str(number) for number in range(1000, 1100)))
    assert all(len(word) == 4 for text in cut for word in text.split())


def test_a_long_run_of_cjk_characters_is_cut_at_a_natural_place() -> None:
    japanese = (
        "これはとても長い文章ですが句読点がないのでどこかで自然に切らなければなりません私はそれを信じています"
    )
    assert texts(japanese)[0].endswith("どこかで")
    chinese = "我们今天早上去了公园看见很多人在那里跑步和唱歌但是我觉得天气太热了就回家休息了一会儿再去"
    assert texts(chinese)[1].startswith("但是")
    cut = texts("我们去公园看见很多人" * 40)
    assert max(len(text) for text in cut) <= 60 and len(cut) < 12


def test_a_small_kana_never_begins_a_clause() -> None:
    assert all(text[0] not in "ょー" for text in texts("きょー" * 200))


def test_a_word_without_end_is_cut_by_length_but_not_inside_a_character() -> None:
    assert [len(text) for text in texts("a" * 500)] == [80, 160, 180, 80]
    assert all(text[0] not in "\u0301\u200d" for text in texts("e\u0301" * 300 + "x\u200dy" * 300))
    assert texts("I " + "a" * 81)[0] == "I "


MESSAGES = [
    ("# Title here\n\nSome text.", ["Title here.", "Some text."]),
    (
        "We need:\n- milk\n- eggs\n- bread and butter\n- tea",
        ["We need:", "milk, eggs, bread and butter.", "tea"],
    ),
    ("You need a few things\n- milk and honey", ["You need a few things", "milk and honey"]),
    ("1. Wash your hands well\n2. Dry them", ["1. Wash your hands well.", "2. Dry them"]),
    ("the quick brown fox\njumps over it", ["the quick brown fox", "jumps over it"]),
    ("a fox\njumps over it", ["a fox jumps over it"]),
    ("One line here\n\nanother line", ["One line here.", "another line"]),
    ("Dr.\nSmith is in the house", ["Dr. Smith is in the house"]),
    ("| City | Size |\n|---|---|\n| Rome | 3 |", ["City, Size.", "Rome, 3"]),
    ("So **this is bold, and that** too, yes.", ["So this is bold,", "and that too, yes."]),
    ("Look:\n```py\nx = 'Hi. You!'\n```\nAll done now.", ["Look:", "All done now."]),
    ("Look: ```py\nx. Y\n``` All done now.", ["Look:", "All done now."]),
    ("Look:\n~~~\nx. Y\n~~~\nAll done now.", ["Look:", "All done now."]),
    ("````\n```\nx. Y\n```\n````\nDone.", ["Done."]),
    ("Run ```a. B``` or ``c`` now~~~ ok", ["Run a. B or c now ok"]),
    ("Text ```py\nnever. Ends", ["Text"]),
    ("Text ```never. Ends", ["Text"]),
    ("Text ```" + "y " * 200, ["Text"]),
    ("Text ```", ["Text"]),
    ("```a``b``` c", ["ab c"]),
    (
        "Go to https://example.com/a?b=c.d now. It is a good place.",
        ["Go to example dot com now.", "It is a good place."],
    ),
    ("Hello! 😊 How are you?", ["Hello!", "How are you?"]),
    ("👍🏽", []),
    ("---\n", []),
    ("<think>a. b! c</think>\n\nHello! How are you?", ["Hello!", "How are you?"]),
    ("Hi <think>never. Ends! Or", ["Hi"]),
    ("Let me see.<tool_call>{}</tool_call>", ["Let me see."]),
    ("I <3 you and 5 < 10.", ["I <3 you and 5 < 10."]),
    ("[a\nb, c", ["a b, c"]),
    ("A [b](c\n", ["A b"]),
    ("~~~~ not~~~\nthe end", []),
]


@pytest.mark.parametrize(("raw", "said"), MESSAGES)
def test_what_is_spoken_of_a_message(raw: str, said: list[str]) -> None:
    assert spoken(raw) == said


def test_addresses_are_read_in_the_language_of_the_options() -> None:
    assert clauses_of("a.com", ClauseOptions(language="de"))[0].spoken == "a Punkt com"


def test_a_code_block_comes_as_silent_text() -> None:
    assert clauses_of("Look:\n```py\nx\n```\nSo.") == [
        Clause("Look:\n", "Look:"),
        Clause("```py\nx\n```", ""),
        Clause("\nSo.", "So."),
    ]


@pytest.mark.parametrize(
    "endless",
    [
        "```\n" + "x = 1. Y\n" * 300,
        "https://x.com/" + "a" * 2500,
        "[a](" + "b" * 2500,
        " " * 2500,
        "*" * 2500,
        "<" * 2500,
        "e" + "\u0301" * 2500,
        "[" + "a b. c " * 400,
        "`" + "a b. c " * 400,
        "x" + "\u200da" * 1200,
    ],
)
def test_text_without_end_takes_bounded_memory(endless: str) -> None:
    stream = ClauseStream()
    out: list[Clause] = []
    for char in endless:
        out += stream.feed(char)
        assert sum(len(value) for value in vars(stream).values() if isinstance(value, str)) < 2200
    out += stream.finish()
    assert "".join(clause.text for clause in out) == endless
    assert max(len(clause.text) for clause in out) <= 1024


def test_the_rest_of_an_address_too_long_to_hold_is_not_spoken() -> None:
    assert spoken("See https://x.com/" + "a" * 5000 + " now.") == ["See", "x dot com", "now."]
    assert spoken("[docs](http://x.com/" + "a" * 5000 + ") now.") == ["docs", "now."]


def test_in_a_hurry_what_waits_is_cut_at_its_best_place() -> None:
    stream = ClauseStream()
    assert stream.feed("I think that we") == []
    assert stream.hurry() == []
    assert stream.feed(" could go home now a") == []
    assert [clause.text for clause in stream.hurry()] == ["I think that we could go home now "]
    assert [clause.text for clause in stream.finish()] == ["a"]


def test_in_a_hurry_a_certain_end_needs_no_next_character() -> None:
    stream = ClauseStream()
    stream.feed("Is it really you?")
    assert [clause.text for clause in stream.hurry()] == ["Is it really you?"]


@pytest.mark.parametrize(
    "held", ["This costs about 3.", "Look at `what is this!", "```\ncode here and more!\n"]
)
def test_in_a_hurry_nothing_is_cut_inside_what_belongs_together(held: str) -> None:
    stream = ClauseStream()
    stream.feed(held)
    assert all(clause.text in ("This costs ", "Look at ") for clause in stream.hurry())


@pytest.mark.parametrize(
    "lengths",
    [
        {"first_min_chars": 2},
        {"first_min_chars": 90},
        {"max_chars": 70},
        {"min_chars": 0},
        {"min_chars": 181},
        {"first_min_chars": 3, "first_max_chars": 11},
    ],
)
def test_lengths_that_contradict_each_other_are_refused(lengths: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="asked for"):
        ClauseOptions(**lengths)  # type: ignore[arg-type]


PIECES = (
    [case.replace("|", "") for case in SPLIT]
    + WHOLE
    + [raw for raw, _ in MESSAGES]
    + list(" \n\t.,!?…—-*_`~[]()<>|#:;/\"'{}。，！「」好きょか\u0301\u200d😊aZ5")
    + [
        "```",
        "~~~",
        "\n\n",
        "://",
        "](",
        "<think>",
        "</think>",
        "Dr. ",
        "a.m. ",
        "It ",
        "and ",
        "word " * 30,
        "字" * 70,
    ]
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=60)


@settings(deadline=None, max_examples=60)
@given(TEXTS, st.data())
def test_how_the_text_is_cut_into_deltas_does_not_matter(raw: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    edges = [0, *cuts, len(raw)]
    deltas = [raw[begin:end] for begin, end in pairwise(edges)]
    assert clauses_of(deltas) == clauses_of(raw) == clauses_of([raw])


@settings(deadline=None, max_examples=60)
@given(TEXTS)
def test_the_texts_of_the_clauses_make_up_the_visible_transcript(raw: str) -> None:
    visible = VisibleText()
    transcript = visible.feed(raw) + visible.finish()
    assert "".join(texts(raw)) == transcript
    tight = ClauseOptions(first_min_chars=3, first_max_chars=12, min_chars=1, max_chars=12)
    assert "".join(texts(raw, tight)) == transcript


@settings(deadline=None, max_examples=60)
@given(TEXTS, st.lists(st.booleans(), min_size=60, max_size=60))
def test_hurrying_loses_nothing(raw: str, hurried: list[bool]) -> None:
    stream, out = ClauseStream(), []
    for index, char in enumerate(raw):
        out += stream.feed(char)
        if hurried[index % 60]:
            out += stream.hurry()
    visible = VisibleText()
    assert "".join(clause.text for clause in out + stream.finish()) == visible.feed(raw) + visible.finish()


@pytest.mark.parametrize("piece", ["a", "a, ", "Hi there. ", "[", " ", "好", "\n- a", "x ```"])
def test_time_grows_with_the_length_whatever_the_text(piece: str) -> None:
    def cpu_s(chars: int) -> float:
        begin = time.process_time()
        clauses_of(piece * (chars // len(piece)))
        return time.process_time() - begin

    short_s = min(cpu_s(500) for _ in range(2))
    assert cpu_s(10_000) < 20 * 5 * max(short_s, 2e-3)
