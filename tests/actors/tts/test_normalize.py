"""Written English becomes words that can be spoken, and keeps where each came from."""

import pytest

from actors.tts.normalize import normalize


def spoken(text: str) -> str:
    return " ".join(token.spoken for token in normalize(text))


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("42", "forty two"),
        ("1,234,567", "one million two hundred and thirty four thousand five hundred and sixty seven"),
        ("3.14", "three point one four"),
        (".5", "zero point five"),
        ("-7", "minus seven"),
        ("007", "zero zero seven"),
        ("1234567890123", "one two three four five six seven eight nine zero one two three"),
        ("1984", "nineteen eighty four"),
        ("2005", "two thousand and five"),
        ("1st 22nd", "first twenty second"),
        ("the 1990s", "the nineteen nineties"),
        ("1/2", "one half"),
        ("3/4", "three quarters"),
        ("24/7", "twenty four seven"),
        ("7/4", "seven over four"),
        ("5-10", "five to ten"),
        ("2019–2021", "twenty nineteen to twenty twenty one"),
        ("GPT-4", "GPT four"),
        ("3.11.7", "three point eleven point seven"),
        ("$3.50", "three dollars and fifty cents"),
        ("$1", "one dollar"),
        ("£0.01", "one penny"),
        ("€0.99", "ninety nine cents"),
        ("$2.5M", "two point five million dollars"),
        ("-$5", "minus five dollars"),
        ("10:30 a.m.", "ten thirty A M."),
        ("5pm", "five P M"),
        ("9:00", "nine o'clock"),
        ("9:05", "nine oh five"),
        ("14:00", "fourteen hundred"),
        ("March 5, 2024", "March fifth, twenty twenty four"),
        ("5 May 2021", "May fifth, twenty twenty one"),
        ("2024-03-05", "March fifth, twenty twenty four"),
        ("12/25/1999", "December twenty fifth, nineteen ninety nine"),
        ("May I", "May I"),
        ("5kg", "five kilograms"),
        ("1 ft", "one foot"),
        ("6 ft", "six feet"),
        ("60 mph", "sixty miles per hour"),
        ("-5 °C", "minus five degrees Celsius"),
        ("20%", "twenty percent"),
        ("555-1234", "five five five, one two three four"),
        ("Dr. Smith", "doctor Smith"),
        ("Main St. and St. Paul", "Main street and saint Paul"),
        ("e.g. this", "for example, this"),
        ("the U.S. economy", "the U S economy"),
        ("World War II", "World War two"),
        ("Henry VIII", "Henry the eighth"),
        ("No. 5", "number five"),
        ("I say no.", "I say no ."),
        ("I ate a fig.", "I ate a fig ."),
        ("fig. 3", "figure three"),
        ("Gen. Lee", "general Lee"),
        ("in the U.S.", "in the U S."),
        ("at Acme Inc.", "at Acme incorporated."),
        ("J. K. Rowling", "J K Rowling"),
        ("apples, etc.", "apples , et cetera."),
        ("A&B", "A and B"),
        ("me@x.org", "me at x dot org"),
        ("https://www.example.com/a-b", "example dot com slash a dash b"),
    ],
)
def test_what_is_written_is_said(written: str, said: str) -> None:
    assert spoken(written) == said


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("**Bold** and `code`", "Bold and code"),
        ("# Title", "Title"),
        ("- item", "item"),
        ("[here](https://x.org/y)", "here"),
        ("Hi 😀 there", "Hi there"),
        ('"quoted"', "quoted"),
    ],
)
def test_markup_quotes_and_emoji_are_silent(written: str, said: str) -> None:
    assert spoken(written) == said


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Wait... what?!", "Wait … what ?"),
        ("a -- b", "a — b"),
        ("a – b", "a — b"),
        ("Yes!!!", "Yes !"),
        ("a, b", "a , b"),
    ],
)
def test_marks_that_shape_prosody_stay(written: str, said: str) -> None:
    assert spoken(written) == said


def test_each_spoken_piece_keeps_its_source() -> None:
    tokens = normalize('It costs $3.50, "Dr. Who"-ish')
    assert [(token.source, token.after_space) for token in tokens] == [
        ("It", True),
        ("costs", True),
        ("$3.50", True),
        (",", False),
        ('"Dr.', True),
        ('Who"-', True),
        ("ish", False),
    ]


@pytest.mark.parametrize("text", ["", "   ", "\n", "😀", "***"])
def test_nothing_to_say_gives_nothing(text: str) -> None:
    assert normalize(text) == []
