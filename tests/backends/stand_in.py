"""Stand-ins for models whose weights cannot be had: they take calls only as the library's own classes would."""

import inspect
from collections.abc import Callable
from typing import Any


class StandIn:
    """Has the methods given by name, checks each call against the signature of `cls`, and keeps it by its names."""

    def __init__(self, cls: type, **answers: Callable[..., Any]) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        for name, answer in answers.items():
            setattr(self, name, self._checked(name, getattr(cls, name), answer))

    def _checked(self, name: str, real: Any, answer: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(real)

        def call(*arguments: Any, **named: Any) -> Any:
            bound = dict(signature.bind(None, *arguments, **named).arguments)
            bound.pop("self", None)
            for parameter in signature.parameters.values():
                if parameter.kind is parameter.VAR_KEYWORD:
                    bound |= bound.pop(parameter.name, {})
            self.calls.append((name, bound))
            return answer(*arguments, **named)

        return call
