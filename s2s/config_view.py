"""The effective configuration for people: each value and where it came from."""

from __future__ import annotations

import argparse
import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

from actors.registry import find
from s2s.config import Config, settings

_SECRET = "api_key"


def run(config: Config, args: argparse.Namespace) -> int:
    """Command `config`."""
    print(options_text(config) if args.options else tree_text(config))
    return 0


def tree_text(config: Config) -> str:
    """One line a value: path, value, origin."""
    rows = [
        (path, _shown(path, value), config.origins.get(path, "default")) for path, value in _leaves(config)
    ]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    widths[1] = min(widths[1], 60)
    return "\n".join(f"{path:{widths[0]}}  {value:{widths[1]}}  {origin}" for path, value, origin in rows)


def options_text(config: Config) -> str:
    """Options of each chosen backend, as flags, with default and meaning."""
    blocks = []
    for stage in config.stages:
        entry = find(stage, config.stage(stage).backend)
        lines = [f"{stage}: {entry.name} ({entry.summary})"]
        cls = entry.options_class()
        meanings = field_docs(cls)
        for option in fields(cls):
            default = {} if option.default is MISSING else option.default
            lines.append(f"  --{stage}_{option.name}  [{default}]")
            meaning = meanings.get(option.name, "")
            lines += textwrap.wrap(meaning, 100, initial_indent="      ", subsequent_indent="      ")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def field_docs(cls: type[Any]) -> dict[str, str]:
    """The docstring below each field of a dataclass, inherited ones included, empty where there is none."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        docs |= _own_docs(base)
    return docs


def _own_docs(cls: type[Any]) -> dict[str, str]:
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    docs: dict[str, str] = {}
    last: str | None = None
    for statement in body.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            last = statement.target.id
            docs[last] = ""
        elif last and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            docs[last] = " ".join(str(statement.value.value).split())
            last = None
    return docs


def _leaves(config: Config) -> Iterator[tuple[str, Any]]:
    for setting in settings().values():
        value: Any = config
        for step in setting.path.split("."):
            value = getattr(value, step)
        yield setting.path, value
        if setting.path.endswith(".backend"):
            stage = setting.path.partition(".")[0]
            yield from _options(f"{stage}.options", config.stage(stage).options)


def _options(prefix: str, options: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in options.items():
        if isinstance(value, dict):
            yield from _options(f"{prefix}.{name}", value)
        else:
            yield f"{prefix}.{name}", value


def _shown(path: str, value: Any) -> str:
    if value is None:
        return "-"
    return "(set)" if path.rpartition(".")[2] == _SECRET else str(value)
