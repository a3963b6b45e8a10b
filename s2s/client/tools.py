"""Functions of a Python module as tools of the model: their JSON schemas, and calls of them.

A function's type hints give the schema (whatever msgspec knows: numbers, strings, lists, literals, enums, dataclasses,
`Annotated[str, msgspec.Meta(description=…)]`), its docstring the description, the lines under `Args:` those of its
parameters.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import json
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, get_type_hints

import msgspec

TIMEOUT_S = 60.0
MOST_OUTPUT = 50_000
"""Characters of a result that the model is given."""


class ToolError(ValueError):
    """A module that can't be had, or a function in it that can't be a tool; says which and why."""


@dataclass(frozen=True)
class Tool:
    """A function that the model may call."""

    function: Callable[..., Any]
    description: str
    arguments: type[msgspec.Struct]

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def schema(self) -> dict[str, Any]:
        """As Realtime wants it in `session.tools`."""
        (_,), definitions = msgspec.json.schema_components([self.arguments], ref_template="#/$defs/{name}")
        parameters = definitions.pop(self.arguments.__name__)
        parameters.pop("title", None)
        if definitions:
            parameters["$defs"] = definitions
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": parameters,
        }


class Tools:
    """What a module offers."""

    def __init__(self, tools: Sequence[Tool] = (), timeout_s: float = TIMEOUT_S) -> None:
        self._tools: Mapping[str, Tool] = {tool.name: tool for tool in tools}
        self._timeout_s = timeout_s

    @property
    def schemas(self) -> list[dict[str, Any]]:
        return [tool.schema for tool in self._tools.values()]

    async def call(self, name: str, arguments: str) -> str:
        """The result as the model reads it: text as it is, other things as JSON; whatever goes wrong as `error`."""
        tool = self._tools.get(name)
        if tool is None:
            return _error(f"There is no tool {name!r}; there are: {', '.join(self._tools) or 'none'}.")
        try:
            given = msgspec.json.decode(arguments or "{}", type=tool.arguments)
        except msgspec.MsgspecError as error:
            return _error(f"The arguments are not right: {error}.")
        keywords = {field: getattr(given, field) for field in tool.arguments.__struct_fields__}
        try:
            async with asyncio.timeout(self._timeout_s):
                result = await _run(tool.function, keywords)
        except TimeoutError:
            return _error(f"{name} took longer than {self._timeout_s:g} s.")
        except Exception as error:  # whatever a tool raises is the model's to hear of
            return _error(f"{type(error).__name__}: {error}")
        try:
            text = result if isinstance(result, str) else msgspec.json.encode(result).decode()
        except (TypeError, msgspec.MsgspecError) as error:
            return _error(f"{name} gave what is no JSON: {error}.")
        return text[:MOST_OUTPUT]


async def _run(function: Callable[..., Any], keywords: Mapping[str, Any]) -> Any:
    """Coroutines on this loop; other functions in a thread of their own, which does not hold up the program's end."""
    if inspect.iscoroutinefunction(function):
        return await function(**keywords)
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: Exception | None) -> None:
        if result.done():
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(value)

    def work() -> None:
        value: Any = None
        failed: Exception | None = None
        try:
            value = function(**keywords)
        except Exception as error:  # carried over to the caller
            failed = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, failed)

    threading.Thread(target=work, name=f"tool {function.__name__}", daemon=True).start()
    return await result


def _error(message: str) -> str:
    return json.dumps({"error": message})


def load_tools(name: str) -> Tools:
    """Every public function of a module (`package.module`) or file (`tools.py`), or those in its `__all__`.

    Raises `ToolError`.
    """
    module = _module(name)
    listed = getattr(module, "__all__", None)
    functions = [
        function
        for key, function in vars(module).items()
        if inspect.isfunction(function)
        and (
            key in listed
            if listed is not None
            else not key.startswith("_") and function.__module__ == module.__name__
        )
    ]
    if not functions:
        raise ToolError(f"--tools {name}: it defines no public function.")
    return Tools([_tool(name, function) for function in functions])


def _module(name: str) -> ModuleType:
    path = Path(name)
    try:
        if path.suffix != ".py":
            return importlib.import_module(name)
        if not path.is_file():
            raise ToolError(f"--tools {name}: no such file.")
        spec = importlib.util.spec_from_file_location(f"s2s_tools_{path.stem}", path)
        assert spec is not None and spec.loader is not None, "a .py file always has a loader"
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
    except ToolError:
        raise
    except Exception as error:  # whatever the module raises while it is imported
        raise ToolError(f"--tools {name}: cannot be imported ({type(error).__name__}: {error}).") from error


def _tool(source: str, function: Callable[..., Any]) -> Tool:
    where = f"--tools {source}: {function.__name__}"
    summary, described = _described(inspect.getdoc(function) or "")
    if not summary:
        raise ToolError(f"{where} has no docstring, so the model would not know what it is for.")
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception as error:  # a hint that is text is evaluated
        raise ToolError(f"{where} has a type hint that is not defined ({error}).") from error
    fields: list[Any] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ToolError(f"{where}: parameter {parameter} cannot be given by name.")
        if parameter.name not in hints:
            raise ToolError(f"{where}: parameter {parameter.name!r} has no type hint.")
        hint = hints[parameter.name]
        if parameter.name in described:
            hint = Annotated[hint, msgspec.Meta(description=described[parameter.name])]
        fields.append(
            (parameter.name, hint)
            if parameter.default is parameter.empty
            else (parameter.name, hint, parameter.default)
        )
    try:
        arguments = msgspec.defstruct(function.__name__, fields, kw_only=True, forbid_unknown_fields=True)
        tool = Tool(function, summary, arguments)
        assert tool.schema, "made once here, so that a hint without a schema is found at once"
    except TypeError as error:
        raise ToolError(f"{where}: a type hint has no JSON schema ({error}).") from error
    return tool


def _described(docstring: str) -> tuple[str, dict[str, str]]:
    """A docstring's text before `Args:`, and what it says of each parameter."""
    text, _, rest = docstring.partition("\nArgs:\n")
    described: dict[str, str] = {}
    name = ""
    for line in rest.splitlines():
        if not line.startswith(" "):
            break
        head, colon, words = line.strip().partition(": ")
        if colon and " " not in head.partition(" (")[0] and line[:5].strip():
            name = head.partition(" (")[0]
            described[name] = words
        elif name:
            described[name] += " " + line.strip()
    return " ".join(text.split()), described
