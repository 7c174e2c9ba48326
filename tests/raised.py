"""Find the errors that a function can raise, from its source and the source of its helpers.

A function raises the errors in its own body and in the bodies of its helpers. Its helpers are the
functions and methods that it calls, directly or through other helpers, as long as the calls cross
from one module to another at most once. Calls of functions in `CHECKS` do not count. The methods of
a robot count as one module. Public functions are not followed, because their docstrings list their
errors.
"""

import ast
import builtins
import importlib
import inspect
import textwrap
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache, cached_property
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, NamedTuple, get_type_hints

PACKAGE = "chasles"
CHECKS = ("chasles.model.given", "chasles.backends.arrays")
"""Modules that check the arguments of public functions."""

MAKERS = ("__new__", "__init__", "__post_init__")
"""Methods that run when an object is created."""


class Instance(NamedTuple):
    """An object whose class is known."""

    kind: type


class Source(NamedTuple):
    """The classes of the errors in a function's body, and the functions that it calls."""

    errors: tuple[type[BaseException], ...]
    calls: tuple[FunctionType, ...]


def errors_of(
    function: Callable[..., Any],
    public: Collection[Any],
    silent: Collection[str] = (),
    compiled: Mapping[str, tuple[type[BaseException], ...]] = MappingProxyType({}),
) -> dict[type[BaseException], list[str]]:
    """Return the errors that a function can raise, and for each the functions that raise it.

    public: functions that are not followed. silent: names of other functions that are not followed.
    compiled: errors that the source does not show, by the name of the function that raises them.
    """
    found: dict[type[BaseException], list[str]] = {}
    seen: set[tuple[FunctionType, bool]] = set()

    def follow(body: FunctionType, elsewhere: bool) -> None:
        if (body, elsewhere) in seen:
            return
        seen.add((body, elsewhere))
        source, place = read(body), name_of(body)
        for kind in (*source.errors, *compiled.get(place, ())):
            found.setdefault(kind, []).append(place)
        for helper in source.calls:
            outside = helper.__module__ not in (body.__module__, *CHECKS)
            ends = helper in public or name_of(helper) in silent
            if not ends and not (outside and elsewhere):
                follow(helper, elsewhere or outside)

    follow(plain(function), False)
    return found


def name_of(function: FunctionType) -> str:
    """Return the name of a function with its module and class."""
    return f"{function.__module__}.{function.__qualname__}"


def plain(function: Any) -> Any:
    """Return a function without its decorators."""
    return inspect.unwrap(getattr(function, "__func__", function))


@cache
def read(function: FunctionType) -> Source:
    """Return the errors and calls in the source of a function."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except OSError:  # made by a decorator, such as the methods of a dataclass
        return Source((), ())
    known = names_in(tree, function)
    nodes = list(ast.walk(tree))
    raises = [node for node in nodes if isinstance(node, ast.Raise)]
    errors = [error for node in raises for error in kinds(node, known)]
    called = [value(node.func, known) for node in nodes if isinstance(node, ast.Call)]
    called += [value(node, known) for node in nodes if isinstance(node, ast.Attribute)]
    calls = [helper for each in called for helper in bodies(each)]
    return Source(tuple(dict.fromkeys(errors)), tuple(dict.fromkeys(calls)))


def names_in(tree: ast.AST, function: FunctionType) -> Mapping[str, Any]:
    """Return the values of the names in a function, as far as the source determines them."""
    local: dict[str, Any] = {}
    known = ChainMap(local, function.__globals__, vars(builtins))
    owner: Any = inspect.getmodule(function)
    *path, _ = function.__qualname__.split(".")
    for name in path:
        owner = getattr(owner, name, None)
    if isinstance(owner, type):
        local |= {"self": Instance(owner), "cls": Instance(owner), "super": owner.__mro__[1]}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = importlib.import_module(node.module)
            local |= {n.asname or n.name: getattr(module, n.name, None) for n in node.names}
        elif isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name):
            local.setdefault(node.name, known.get(node.returns.id))  # a nested function
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made = value(node.value.func, known)
            if isinstance(made, type) and isinstance(node.targets[0], ast.Name):
                local[node.targets[0].id] = Instance(made)
    return known


def value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """Return the value of an expression, or None if it is unknown."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return Instance(known["super"])
        made = value(node.func, known)
        return Instance(made) if isinstance(made, type) else None
    if isinstance(node, ast.Attribute):
        owner = value(node.value, known)
        if isinstance(owner, ModuleType):
            return getattr(owner, node.attr, None)
        owner = owner.kind if isinstance(owner, Instance) else owner
        return inspect.getattr_static(owner, node.attr, None) if isinstance(owner, type) else None
    return None


def bodies(called: Any) -> Iterator[FunctionType]:
    """Yield the functions of the package that run when an object is called or read."""
    if isinstance(called, type):
        if not issubclass(called, BaseException):
            for name in MAKERS:
                yield from bodies(inspect.getattr_static(called, name, None))
        return
    if isinstance(called, property):
        called = called.fget
    elif isinstance(called, cached_property):
        called = called.func
    called = plain(called)
    if isinstance(called, FunctionType) and called.__module__.startswith(PACKAGE):
        yield called


def kinds(node: ast.Raise, known: Mapping[str, Any]) -> Iterator[type[BaseException]]:
    """Yield the class of the error of a `raise` statement.

    An error that is raised again belongs to the function that raised it first. `raise
    NotImplementedError` marks an abstract method.
    """
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    kind = None if raised is None else value(raised, known)
    if isinstance(kind, FunctionType):
        kind = get_type_hints(kind).get("return")
    if isinstance(kind, type) and kind is not NotImplementedError:
        assert issubclass(kind, BaseException)
        yield kind
