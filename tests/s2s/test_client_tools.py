"""Functions of a module become tools of the model."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from s2s.client.tools import Tool, ToolError, Tools, load_tools

MODULE = '''
import asyncio
import enum
from dataclasses import dataclass
from typing import Literal, Optional


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


@dataclass
class Place:
    city: str
    country: str = "France"


def weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius", days: Optional[int] = None) -> dict:
    """The weather in a city
    now.

    Args:
        city: its name,
            in English
        unit (str): of the temperature

    Returns:
        what it is like
    """
    return {"city": city, "unit": unit, "days": days}


async def order(places: list[Place], size: Size) -> str:
    """Order something."""
    await asyncio.sleep(0)
    return f"{size.value} for {places[0].city} in {places[0].country}"


def fails(number: float) -> float:
    """Divide by it."""
    return 1 / number


def odd() -> object:
    """Gives what is no JSON."""
    return object()


def _private(city):
    pass
'''


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    file = tmp_path / "my_tools.py"
    file.write_text(MODULE)
    return load_tools(str(file))


def schema(tools: Tools, name: str) -> dict[str, Any]:
    return next(each for each in tools.schemas if each["name"] == name)


def test_public_functions_are_tools_and_what_is_imported_is_none(tools: Tools) -> None:
    assert [each["name"] for each in tools.schemas] == ["weather", "order", "fails", "odd"]


def test_hints_and_docstring_make_the_schema(tools: Tools) -> None:
    assert schema(tools, "weather") == {
        "type": "function",
        "name": "weather",
        "description": "The weather in a city now.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "its name, in English"},
                "unit": {
                    "enum": ["celsius", "fahrenheit"],
                    "description": "of the temperature",
                    "default": "celsius",
                },
                "days": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    }


def test_nested_types_are_in_the_schema(tools: Tools) -> None:
    parameters = schema(tools, "order")["parameters"]
    assert set(parameters["$defs"]) == {"Place", "Size"}
    assert parameters["required"] == ["places", "size"]


@pytest.mark.parametrize(
    ("name", "arguments", "output"),
    [
        ("weather", '{"city": "Rome"}', '{"city":"Rome","unit":"celsius","days":null}'),
        ("order", '{"places": [{"city": "Lyon"}], "size": "large"}', "large for Lyon in France"),
        ("fails", '{"number": 2}', "0.5"),
    ],
)
async def test_a_call_gets_its_arguments_in_their_types(
    tools: Tools, name: str, arguments: str, output: str
) -> None:
    assert await tools.call(name, arguments) == output


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("wether", "{}", "no tool 'wether'; there are: weather, order, fails, odd"),
        ("weather", "{}", "missing required field `city`"),
        ("weather", '{"city": 3}', "Expected `str`, got `int` - at `$.city`"),
        ("weather", '{"city": "Rome", "contry": "x"}', "unknown field `contry`"),
        ("weather", '{"city": "Ro', "truncated"),
        ("fails", '{"number": 0}', "ZeroDivisionError"),
        ("odd", "", "no JSON"),
    ],
)
async def test_what_goes_wrong_is_told_to_the_model(
    tools: Tools, name: str, arguments: str, says: str
) -> None:
    assert says in json.loads(await tools.call(name, arguments))["error"]


async def test_a_tool_that_hangs_is_given_up() -> None:
    ends = threading.Event()

    def hangs() -> None:
        """Never ends."""
        ends.wait()

    import msgspec

    tool = Tool(hangs, "", msgspec.defstruct("hangs", []))
    answer = await Tools([tool], timeout_s=0.01).call("hangs", "{}")
    ends.set()
    assert "took longer" in json.loads(answer)["error"]


def test_all_says_which_functions_are_tools(tmp_path: Path) -> None:
    file = tmp_path / "listed.py"
    file.write_text(f"__all__ = ['weather']\n{MODULE}")
    assert [each["name"] for each in load_tools(str(file)).schemas] == ["weather"]


def test_a_module_may_be_named_as_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tools_by_name.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    assert len(load_tools("tools_by_name").schemas) == 4


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1", "defines no public function"),
        ("def f(a: int): pass", "f has no docstring"),
        ("def f(a):\n  'F.'", "parameter 'a' has no type hint"),
        ("def f(*a: int):\n  'F.'", "parameter *a: int cannot be given by name"),
        ("def f(a: open):\n  'F.'", "no JSON schema"),
        ("from __future__ import annotations\ndef f(a: Nothing):\n  'F.'", "'Nothing' is not defined"),
        ("import json\ndef f(a: 'json.Nothing'):\n  'F.'", "has a type hint that is not defined"),
        ("1 / 0", "ZeroDivisionError"),
        ("def f(", "SyntaxError"),
    ],
)
def test_a_module_that_cannot_be_used_is_refused_in_words(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "bad.py"
    file.write_text(text)
    with pytest.raises(ToolError) as error:
        load_tools(str(file))
    assert str(file) in str(error.value)
    assert says in str(error.value)


@pytest.mark.parametrize("name", ["nowhere.py", "no_such_module_at_all"])
def test_a_module_that_is_not_there(name: str) -> None:
    with pytest.raises(ToolError, match=name):
        load_tools(name)
