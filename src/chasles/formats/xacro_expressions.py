"""Evaluate expressions in xacro files without running them as Python.

An expression is parsed, and its syntax tree is evaluated. Expressions may contain numbers, strings,
lists, operators, comprehensions, and calls to the functions that the xacro package documents.
Nothing else is supported. In particular, `a.b` is an entry of a table, never an attribute of a
Python object. Time and memory are limited. Like `xacro_child`, this module does not import chasles.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

MOST_WORK = 1_000_000
"""Maximum number of evaluated syntax nodes and created entries for one file.

Each of 468 published files needs fewer than 30,000.
"""

MOST_CHARACTERS = 20_000
"""Maximum number of characters in an expression."""

MOST_LEVELS = 150
"""Maximum nesting depth of an expression."""

MOST_BITS = 4096
"""Maximum number of bits in an integer."""

MOST_DIGITS = 400
"""Maximum number of digits in `round`, and maximum argument of `factorial`, `comb` and `perm`."""


class Refused(Exception):
    """Exception raised for an unsupported expression, which xacro itself might support."""

    expression = ""

    @property
    def told(self) -> str:
        """Error message, including the expression."""
        long = len(self.expression) > 100
        cut = f"{self.expression[:97]}..." if long else self.expression
        return f"{self}: ${{{cut}}}" if cut else str(self)


_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Not: operator.not_,
    ast.Invert: operator.invert, ast.Add: operator.add, ast.Sub: operator.sub,
    ast.Mult: operator.mul, ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt,
    ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_,
    ast.IsNot: operator.is_not, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip

_ENTRIES = (str, list, tuple, dict, range)
"""Types of values that can be indexed in an expression."""

_PLAIN = (int, float, type(None), *_ENTRIES, set, frozenset)
"""Types of operands that operators accept in an expression."""

_SAID = {
    ast.Lambda: "lambda",
    ast.JoinedStr: "an f-string",
    ast.NamedExpr: ":=",
    ast.Starred: "*",
}
"""Names that error messages use for unsupported syntax."""

METHODS: dict[type, frozenset[str]] = {
    str: frozenset((
        "lower", "upper", "title", "capitalize", "swapcase", "strip", "lstrip", "rstrip", "split",
        "rsplit", "splitlines", "partition", "rpartition", "join", "replace", "removeprefix",
        "removesuffix", "find", "rfind", "index", "count", "startswith", "endswith", "isdigit",
        "isalpha", "isalnum", "isnumeric", "islower", "isupper",
    )),
    list: frozenset(("index", "count", "copy", "pop")),
    tuple: frozenset(("index", "count")),
    dict: frozenset(("keys", "values", "items", "get", "copy")),
}  # fmt: skip
"""Allowed methods for each type of object."""


def _small(f: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that it refuses integer arguments larger than `MOST_DIGITS`."""

    def call(*given: Any) -> Any:
        if any(isinstance(x, int) and abs(x) > MOST_DIGITS for x in given):
            raise Refused(f"{f.__name__} with numbers above {MOST_DIGITS} is not supported")
        return f(*given)

    return call


def _round(number: Any, ndigits: Any = None) -> Any:
    return round(number) if ndigits is None else round(number, _small(operator.index)(ndigits))


def _listed(f: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that it returns a list instead of an iterator."""

    def call(*given: Any) -> list[Any]:
        return list(f(*given))

    return call


_PYTHON = (
    *(abs, all, any, bool, dict, divmod, float, frozenset, int, isinstance, len, list, max, min),
    *(ord, range, repr, set, sorted, str, sum, tuple),
)
_LISTED = (enumerate, filter, map, reversed, zip)

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{f.__name__: f for f in _PYTHON},
    **{f.__name__: _listed(f) for f in _LISTED},
    **{name: f for name, f in vars(math).items() if callable(f) and not name.startswith("_")},
    "round": _round,
    **{f.__name__: _small(f) for f in (math.factorial, math.comb, math.perm)},
}
"""Allowed functions by name: Python built-ins and the functions in `math`, some with limits."""

_BY_KEY = (FUNCTIONS["min"], FUNCTIONS["max"], FUNCTIONS["sorted"])
_BY_FIRST = (FUNCTIONS["map"], FUNCTIONS["filter"])
"""Functions that accept another function, as `key` or as the first argument."""

_PRINTED = re.compile(r"(?:[^%]|%%|%[-+ #0]*\d{0,2}(?:\.\d{0,2})?[sdiufFgGeExXor])*", re.DOTALL)
"""Pattern for format strings (left operands of `%`) that cannot produce very long results."""


class Evaluator:
    """Evaluator for the expressions in a file.

    `functions` are pairs of an allowed function and the function that is called instead. `tables`
    are the dictionary types whose entries can also be written as attributes (`a.b` for `a['b']`).
    `spaces` are the types in `tables` that are namespaces.
    """

    def __init__(
        self,
        functions: Iterable[tuple[Any, Callable[..., Any]]],
        tables: tuple[type, ...] = (),
        spaces: tuple[type, ...] = (),
    ) -> None:
        self.functions = {id(known): (known, f) for known, f in functions}
        self.tables, self.spaces = tables, spaces
        self.left = MOST_WORK

    def __call__(self, expression: str, names: Any) -> Any:
        """Evaluate an expression; `names` maps names to values."""
        try:
            value = _Walk(self, names).visit(self._tree(expression))
            self.weigh(value)
            return value
        except Refused as error:
            error.expression = error.expression or expression
            raise

    def _tree(self, expression: str) -> ast.expr:
        if len(expression) > MOST_CHARACTERS:
            raise Refused(f"the expression has more than {MOST_CHARACTERS} characters")
        try:
            return ast.parse(expression.strip(), mode="eval").body
        except (RecursionError, MemoryError):
            raise Refused("the expression is nested too deeply") from None

    def spend(self, work: int) -> None:
        """Subtract `work` from the file's limit, `MOST_WORK`; raise an error if it is exceeded."""
        self.left -= work
        if self.left < 0:
            raise Refused("the expressions of the file take too long to evaluate")

    def weigh(self, *values: Any) -> None:
        """Subtract the size of values, including nested values, from the remaining work limit."""
        pending = list(values)
        while pending:
            value = pending.pop()
            if isinstance(value, int) and value.bit_length() > MOST_BITS:
                raise Refused(f"an integer has more than {MOST_BITS} bits")
            if isinstance(value, str):
                self.spend(len(value) // 8)
            elif isinstance(value, range):
                self.spend(abs(value.stop - value.start) // abs(value.step))
            elif isinstance(value, dict) and not isinstance(value, self.spaces):
                self.spend(2 * len(value))
                pending += [*dict.keys(value), *dict.values(value)]
            elif isinstance(value, list | tuple | set | frozenset):
                self.spend(len(value))
                pending += list.__iter__(value) if isinstance(value, list) else value


class _Walk(ast.NodeVisitor):
    """Visitor that evaluates an expression; a node without a visitor method raises an error."""

    def __init__(self, bounds: Evaluator, names: Any) -> None:
        self._bounds, self._names = bounds, names
        self._local: dict[str, Any] = {}
        self._level = 0

    def visit(self, node: ast.AST) -> Any:
        self._bounds.spend(1)
        self._level += 1
        if self._level > MOST_LEVELS:
            raise Refused("the expression is nested too deeply")
        value = super().visit(node)
        self._level -= 1
        return value

    def generic_visit(self, node: ast.AST) -> Any:
        raise Refused(f"{_SAID.get(type(node), type(node).__name__)} is not supported")

    def visit_Constant(self, node: ast.Constant) -> Any:
        if not isinstance(node.value, int | float | str | None):
            raise Refused(f"a literal of type {type(node.value).__name__} is not supported")
        return node.value

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id in self._local:
            return self._local[node.id]
        try:
            return self._names[node.id]
        except KeyError:
            raise NameError(f"name '{node.id}' is not defined") from None

    def visit_List(self, node: ast.List) -> list[Any]:
        return [self.visit(x) for x in node.elts]

    def visit_Tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(self.visit(x) for x in node.elts)

    # Operators ---------------------------------------------------------------------------------

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        value = None
        for part in node.values:
            value = self.visit(part)
            if bool(value) is isinstance(node.op, ast.Or):
                break
        return value

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return self.visit(node.body if self.visit(node.test) else node.orelse)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        return _OPERATORS[type(node.op)](self.visit(node.operand))

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        f = _OPERATORS.get(type(node.op))
        if f is None:
            raise Refused("@ is not supported")
        a, b = self._plain(self.visit(node.left)), self._plain(self.visit(node.right))
        self._check_growth(type(node.op), a, b)
        value = f(a, b)
        self._bounds.weigh(value)
        return value

    def _plain(self, value: Any) -> Any:
        if not isinstance(value, _PLAIN) or isinstance(value, self._bounds.spaces):
            raise Refused(f"arithmetic with a {type(value).__name__} is not supported")
        return value

    def _check_growth(self, op: type, a: Any, b: Any) -> None:
        """Raise an error if the result would be much larger than the operands."""
        whole = isinstance(a, int) and isinstance(b, int)
        if op is ast.Mult:
            for count, text in ((a, b), (b, a)):
                if isinstance(count, int) and isinstance(text, str | list | tuple):
                    self._bounds.spend(max(count, 0) * len(text))
        elif op is ast.Pow and whole and b > 0 and a.bit_length() * b > MOST_BITS:
            raise Refused("the power is too large")
        elif op is ast.LShift and whole and a.bit_length() + b > MOST_BITS:
            raise Refused("the shift is too large")
        elif op is ast.Mod and isinstance(a, str):
            self._bounds.weigh(b)
            if not _PRINTED.fullmatch(a):
                raise Refused("this format is not supported")

    def visit_Compare(self, node: ast.Compare) -> Any:
        value: Any = True
        left = self.visit(node.left)
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self.visit(part)
            if not isinstance(op, ast.Is | ast.IsNot):
                self._bounds.weigh(left, *(() if isinstance(right, range) else (right,)))
            value, left = _OPERATORS[type(op)](left, right), right
            if not value:
                break
        return value

    # Entries -----------------------------------------------------------------------------------

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        return self._entry(self.visit(node.value), node.attr)

    def _entry(self, owner: Any, name: str) -> Any:
        known = isinstance(owner, self._bounds.tables)
        if not known:
            raise Refused(f"attribute {name!r} of a {type(owner).__name__} is not supported")
        try:
            return owner[name]
        except KeyError:
            raise NameError(f"name '{name}' is not defined") from None

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        owner: Any = self.visit(node.value)
        if isinstance(owner, _ENTRIES):
            return operator.getitem(owner, self.visit(node.slice))
        raise Refused(f"indexing a {type(owner).__name__} is not supported")

    def visit_Slice(self, node: ast.Slice) -> slice:
        return slice(*(x and self.visit(x) for x in (node.lower, node.upper, node.step)))

    # Comprehensions ----------------------------------------------------------------------------

    def visit_ListComp(self, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
        return list(self._made(node.generators, node.elt))

    visit_GeneratorExp = visit_ListComp

    def _made(self, generators: list[ast.comprehension], part: ast.expr) -> Iterator[Any]:
        if not generators:
            yield self.visit(part)
            return
        first, *rest = generators
        if first.is_async:
            raise Refused("async is not supported")
        among, outer = self.visit(first.iter), dict(self._local)
        self._bounds.weigh(among)
        for value in among:
            self._bind(first.target, value)
            if all(self.visit(test) for test in first.ifs):
                yield from self._made(rest, part)
        self._local = outer

    def _bind(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self._local[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            for part, x in zip(target.elts, value, strict=True):
                self._bind(part, x)
        else:
            raise Refused("this kind of variable is not supported")

    # Calls -------------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> Any:
        function = self._function(node.func)
        given = [self.visit(x) for x in node.args]
        named = {keyword.arg or "**": self.visit(keyword.value) for keyword in node.keywords}
        if "**" in named:
            raise Refused("** is not supported")
        return self._called(function, given, named)

    def _called(
        self, function: Callable[..., Any], given: Iterable[Any], named: dict[str, Any]
    ) -> Any:
        """Call an allowed function, with limits on the sizes of its arguments and its result."""
        given = list(given)
        self._bounds.weigh(given, named)
        if function in _BY_KEY and named.get("key") is not None:
            named["key"] = self._handed(named["key"])
        if function in _BY_FIRST and given and given[0] is not None:
            given[0] = self._handed(given[0])
        value = function(*given, **named)
        self._bounds.weigh(value)
        return value

    def _handed(self, function: Any) -> Callable[..., Any]:
        """Wrap a function that is passed as an argument, so that its calls are limited as well."""
        known = self._known(function)
        return lambda *given: self._called(known, given, {})

    def _function(self, node: ast.expr) -> Callable[..., Any]:
        """Return an allowed function, or an allowed method of a string, list, tuple or dict."""
        if not isinstance(node, ast.Attribute):
            return self._known(self.visit(node))
        owner = self.visit(node.value)
        if isinstance(owner, self._bounds.spaces):
            return self._known(self._entry(owner, node.attr))
        for kind, names in METHODS.items():
            if isinstance(owner, kind) and node.attr in names:
                return self._method(owner, getattr(kind, node.attr))
        raise Refused(f"method {node.attr!r} of a {type(owner).__name__} is not supported")

    def _method(self, owner: Any, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            sizes = [len(x) for x in given if isinstance(x, str | list | tuple)]
            if method in (str.join, str.replace):  # may repeat a string many times
                self._bounds.spend((len(owner) + 1) * (max(sizes, default=0) + 1))
            return method(owner, *given, **named)

        self._bounds.weigh(owner)
        return call

    def _known(self, function: Any) -> Callable[..., Any]:
        """Return the safe version of a function; raise an error if the function is not allowed."""
        if id(function) in self._bounds.functions:
            return self._bounds.functions[id(function)][1]
        if callable(function):
            raise Refused(f"function {getattr(function, '__name__', '')!r} is not supported")
        raise TypeError(f"'{type(function).__name__}' object is not callable")
