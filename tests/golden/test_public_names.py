"""Public API: all names, signatures and commands that users can rely on.

`python tests/golden/test_public_names.py` regenerates the golden file. A line that disappears
breaks users' programs. Explain it in CHANGELOG.md.
"""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import chasles
from chasles.cli.app import app

GOLDEN = Path(__file__).parent / "public_names.txt"

MODULES = (
    "chasles",
    "chasles.contact",
    "chasles.control",
    "chasles.conventions",
    "chasles.expr",
    "chasles.homogeneous",
    "chasles.model",
    "chasles.robots",
    "chasles.targets",
    "chasles.trajectory",
)
"""Modules with public names, which `docs/api` documents."""


def surface() -> Iterator[str]:
    """Yield one line for each public name, with its kind, path and signature."""
    for module in MODULES:
        loaded = importlib.import_module(module)
        for name in sorted(_public(loaded)):
            yield from _lines(f"{module}.{name}", getattr(loaded, name))
    for words, command in _commands(typer.main.get_command(app), "chasles"):
        options = sorted(
            "/".join((*p.opts, *p.secondary_opts)) if p.opts[0].startswith("-") else p.name.upper()
            for p in command.params
        )
        yield f"command {words}: {' '.join(options)}"


def _public(module: Any) -> list[str]:
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__
    ]
    return [name for name in own if not name.startswith("_")]


def _lines(path: str, value: Any) -> Iterator[str]:
    if inspect.ismodule(value):
        yield f"module {path}"
    elif inspect.isclass(value):
        yield f"class {path}{_signature(value)}: {', '.join(_bases(value))}".rstrip(": ")
        for name in sorted(_members(value)):
            member = inspect.getattr_static(value, name, None)
            if isinstance(member, staticmethod | classmethod):
                member = member.__func__
            called = _signature(member) if inspect.isfunction(member) else ""
            yield f"  .{name}{called}"
    elif callable(value):
        yield f"function {path}{_signature(value)}"
    else:
        yield f"value {path}: {type(value).__name__}"


def _bases(kind: type) -> list[str]:
    """Return the built-in and public base classes, which matter for `except` and `isinstance`."""
    return sorted(
        base.__name__
        for base in kind.__mro__[1:-1]
        if base.__module__ == "builtins" or base.__name__ in chasles.__all__
    )


def _members(kind: type) -> set[str]:
    """Return the public attributes that chasles defines."""
    own = (base for base in kind.__mro__ if base.__module__.startswith("chasles"))
    names = {name for base in own for name in (*vars(base), *inspect.get_annotations(base))}
    return {name for name in names if not name.startswith("_")}


def _signature(function: Any) -> str:
    """Return the names, kinds and defaults of the arguments, without annotations."""
    try:
        read = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in read.parameters.values()]
    text = str(read.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def _commands(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    if hasattr(command, "commands"):
        for name, inner in sorted(command.commands.items()):
            yield from _commands(inner, f"{words} {name}")
    else:
        yield words, command


def test_the_public_surface_is_the_golden_one() -> None:
    now, golden = list(surface()), GOLDEN.read_text().splitlines()
    lost, new = sorted(set(golden) - set(now)), sorted(set(now) - set(golden))
    assert now == golden, (
        f"lost: {lost}, new: {new}; if that is meant, run `python {Path(__file__).name}` and say "
        "it in CHANGELOG.md"
    )


if __name__ == "__main__":
    GOLDEN.write_text("".join(f"{line}\n" for line in surface()))
