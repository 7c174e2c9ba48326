"""Expression nodes, which an arena interns so that equal expressions are the same object."""

import gc
import hashlib
import struct
from collections.abc import Callable, Iterator, Mapping, ValuesView
from contextlib import AbstractContextManager, contextmanager
from numbers import Real
from typing import Any, NamedTuple

from chasles.errors import ArgumentError, InputError
from chasles.expr.ops import OPS

Number = Any
"""A `float` or a `Scalar`.

The packages `mathematics`, `model` and `algorithms` of chasles work with both types.
"""

Rule = Callable[..., "Number | None"]
"""Simplification rule: a function that returns a simpler expression, or None if it finds none."""


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause the garbage collector, which would repeatedly visit all nodes of a long trace."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _digest(text: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def _mixed(op: str, nodes: tuple["Scalar", ...]) -> int:
    """Combine the digests of the arguments into the digest of an operation."""
    mixed = _OP_DIGEST[op]
    for a in nodes:
        mixed = ((mixed ^ a.digest) * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & 0xFFFFFFFFFFFFFFFF
        mixed ^= mixed >> 29
    return mixed


_OP_DIGEST = {name: _digest(name.encode()) for name in OPS}
_COMMUTATIVE = frozenset(name for name, op in OPS.items() if op.commutative)


class Scalar:
    """Expression node, created with Python operators and the functions of `chasles.expr`.

    Arguments of commutative operations are sorted by `digest`. In an `ordered` arena, the digest is
    the number of nodes created earlier. In any other arena, the digest depends only on the
    structure of the expression, not on memory addresses or the order of tracing.
    """

    __slots__ = ("arena", "args", "data", "digest", "op")

    def __init__(
        self, arena: "Arena", op: str, args: tuple["Scalar", ...], data: Any, digest: int
    ) -> None:
        self.arena, self.op, self.args, self.data, self.digest = arena, op, args, data, digest

    def __add__(self, other: Number) -> Number:
        return self.arena.build("add", self, other)

    def __radd__(self, other: Number) -> Number:
        return self.arena.build("add", other, self)

    def __sub__(self, other: Number) -> Number:
        return self.arena.build("sub", self, other)

    def __rsub__(self, other: Number) -> Number:
        return self.arena.build("sub", other, self)

    def __mul__(self, other: Number) -> Number:
        if not is_number(other):
            return NotImplemented  # vectors and matrices implement products with scalars
        return self.arena.build("mul", self, other)

    def __rmul__(self, other: Number) -> Number:
        return self.arena.build("mul", other, self)

    def __truediv__(self, other: Number) -> Number:
        return self.arena.build("div", self, other)

    def __rtruediv__(self, other: Number) -> Number:
        return self.arena.build("div", other, self)

    def __neg__(self) -> Number:
        return self.arena.build("neg", self)

    def __pos__(self) -> Number:
        return self

    def __bool__(self) -> bool:
        problem = "a traced number has no truth value, because its value is not known yet"
        raise ArgumentError("E-EXPR-003", problem, "use chasles.expr.select(condition, a, b)")

    def __float__(self) -> float:
        problem = (
            "a traced number has no float value, because its value is not known yet; "
            "use functions of chasles.expr instead of math or NumPy"
        )
        raise ArgumentError("E-EXPR-004", problem)

    def __repr__(self) -> str:
        return self._text(depth=4)

    def _text(self, depth: int) -> str:
        """Return the expression as a string, with arguments omitted below the given depth."""
        if self.op == "const":
            return repr(self.data)
        if self.op == "input":
            name, index = self.data
            return f"{name}[{index}]"
        inside = ", ".join(a._text(depth - 1) for a in self.args) if depth else "..."
        return f"{self.op}({inside})"


def is_number(x: object) -> bool:
    """Return True if an object can be used as a `Number`.

    Parameters
    ----------
    x : object
        Any object.

    Returns
    -------
    bool
        True for expressions, floats, integers and other real numbers.

    Examples
    --------
    >>> from chasles import expr
    >>> expr.is_number(1.0), expr.is_number("1.0")
    (True, False)
    """
    return type(x) is Scalar or type(x) is float or isinstance(x, (int, Real))


def _plain(a: Number) -> Number:
    """Convert a constant of any type to a float, and return an expression unchanged."""
    if type(a) is Scalar:
        return a.data if a.op == "const" else a
    return float(a)


class Seat(NamedTuple):
    """Limb to which an input belongs, and the position of the input within the limb.

    Limbs with the same structure have the same `kind`. `lane` is the index of the limb among the
    `lanes` limbs of this kind, and `place` is the index of the input within its limb. Inputs with
    the same place have the same digest, so all limbs of a kind have the same trace.
    """

    kind: int
    lane: int
    lanes: int
    place: int


class Arena:
    """Container for the nodes of one trace.

    Threads must not share an arena. As a context manager, the arena clears its nodes on exit, which
    breaks reference cycles and frees the nodes immediately. The garbage collector, which would have
    to visit all nodes, is disabled inside the context.

    Parameters
    ----------
    rules
        Simplification rules by operation.
    where
        Function called for each new operation. `origins` stores the returned value for each node.
    apart
        Create separate nodes for equal operations if `where` returns different values for them.
    ordered
        Preserve the order and segments of the trace (see `cut`) in programs, and sort commutative
        arguments by the order of their creation. Bodies that are traced in the same way then have
        the same instructions.
    """

    def __init__(
        self,
        rules: Mapping[str, Rule],
        where: Callable[[], Any] | None = None,
        *,
        apart: bool = False,
        ordered: bool = False,
    ) -> None:
        self._rules, self._where, self._apart, self.ordered = rules, where, apart, ordered
        self._nodes: dict[tuple[Any, ...], Scalar] = {}
        self._built: dict[tuple[str, tuple[Number, ...]], Number] = {}
        self.origins: dict[Scalar, Any] = {}
        self.seats: dict[Scalar, Seat] = {}
        self._paused: AbstractContextManager[None] = uncollected()
        self.cuts: list[int] = []
        """Number of nodes at each call of `cut`, which divides the trace into segments."""

    def __enter__(self) -> "Arena":
        self._paused = uncollected()
        self._paused.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._nodes.clear()
        self._built.clear()
        self.origins.clear()
        self.seats.clear()
        self._paused.__exit__(None, None, None)

    @property
    def nodes(self) -> ValuesView[Scalar]:
        """All nodes of the trace, from oldest to newest."""
        return self._nodes.values()

    def cut(self) -> None:
        """Start a new segment of the trace, for example for the next body.

        Notes
        -----
        The start of the segment is recorded in `cuts`.

        Examples
        --------
        >>> from chasles.expr import RULES, Arena
        >>> arena = Arena(RULES, ordered=True)
        >>> _ = arena.input("q", 0)
        >>> arena.cut()
        >>> arena.cuts
        [1]
        """
        self.cuts.append(len(self._nodes))

    def input(self, name: str, index: int, seat: Seat | None = None) -> Scalar:
        """Return the symbol for an entry of an input.

        Parameters
        ----------
        name : str
            Name of the input.
        index : int
            Index of the entry in C order.
        seat : Seat, optional
            Limb to which the entry belongs, if several limbs have the same structure.

        Returns
        -------
        x : Scalar
            Symbol. Calls with the same name and index return the same object.

        Examples
        --------
        >>> from chasles.expr import RULES, Arena
        >>> arena = Arena(RULES)
        >>> arena.input("q", 0) + 1.0
        add(q[0], 1.0)
        """
        text = f"{name}[{index}]" if seat is None else f"{name} {seat.kind} {seat.place}"
        digest = len(self._nodes) if self.ordered else _digest(text.encode())
        node = self._intern(("input", (name, index)), (), digest)
        if seat is not None:
            self.seats[node] = seat
        return node

    def const(self, value: float) -> Scalar:
        """Return the node for a constant.

        Parameters
        ----------
        value : float
            Value of the constant. Values with the same bits share a node.

        Returns
        -------
        x : Scalar
            The node.

        Examples
        --------
        >>> from chasles.expr import RULES, Arena
        >>> Arena(RULES).const(2)
        2.0
        """
        value = float(value)
        bits = struct.pack("<d", value)
        found = self._nodes.get(("const", bits))
        if found is None:
            found = Scalar(self, "const", (), value, 0 if self.ordered else _digest(bits))
            self._nodes["const", bits] = found
        return found

    def node(self, op: str, *args: Number) -> Scalar:
        """Return the node for an operation without simplifying it.

        Parameters
        ----------
        op : str
            Name of the operation, such as "add".
        *args : Number
            Arguments. The arguments of commutative operations are sorted, so that a + b and b + a
            are the same node.

        Returns
        -------
        x : Scalar
            The node.

        Examples
        --------
        >>> from chasles.expr import RULES, Arena
        >>> arena = Arena(RULES)
        >>> arena.node("mul", 1.0, arena.input("x", 0)).op
        'mul'
        """
        for a in args:
            if type(a) is not Scalar:
                args = tuple([a if type(a) is Scalar else self.const(a) for a in args])
                break
        if op in _COMMUTATIVE and args[1].digest < args[0].digest:
            args = args[::-1]
        key = (op, None, *args)
        if self._where is not None:
            return self._intern(key, args, _mixed(op, args))
        found = self._nodes.get(key)
        if found is None:
            digest = len(self._nodes) if self.ordered else _mixed(op, args)
            found = self._nodes[key] = Scalar(self, op, args, None, digest)
        return found

    def build(self, op: str, *args: Number) -> Number:
        """Apply an operation and simplify the result.

        Parameters
        ----------
        op : str
            Name of the operation, such as "add".
        *args : Number
            Arguments.

        Returns
        -------
        x : Number
            An expression, or a float if the result is constant.

        Raises
        ------
        InputError
            If an argument belongs to another arena.

        Examples
        --------
        >>> from chasles.expr import RULES, Arena
        >>> arena = Arena(RULES)
        >>> arena.build("mul", 1.0, arena.input("x", 0))
        x[0]
        """
        symbolic, given = False, True
        for a in args:
            if type(a) is Scalar:
                if a.arena is not self:
                    raise InputError(
                        "E-EXPR-005", "numbers from different traces cannot be combined"
                    )
                if a.op == "const":
                    given = False
                else:
                    symbolic = True
            elif type(a) is not float:
                given = False
        if not given:
            args = tuple([_plain(a) for a in args])
        if not symbolic:
            return OPS[op].value(*args)
        if self._apart:
            return self._simplest(op, args)
        found = self._built.get((op, args))
        if found is None:
            found = self._simplest(op, args)
            if 0.0 not in args:  # 0.0 and -0.0 would be the same key
                self._built[op, args] = found
        return found

    def _simplest(self, op: str, args: tuple[Number, ...]) -> Number:
        rule = self._rules.get(op)
        if rule is not None:
            simpler = rule(self, *args)
            if type(simpler) is Scalar:  # constants become floats for constant folding
                return simpler.data if simpler.op == "const" else simpler
            if simpler is not None:
                return float(simpler)
        return self.node(op, *args)

    def _intern(self, key: tuple[Any, ...], args: tuple[Scalar, ...], digest: int) -> Scalar:
        """Return the node for a key (operation, data and arguments), and create it if necessary."""
        op, data, origin = key[0], key[1], None
        if self._apart and args and self._where is not None:
            origin = self._where()
            key += (origin,)
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = Scalar(self, op, args, data, digest)
            if self._where is not None:
                self.origins[found] = origin if origin is not None else self._where()
        return found


def apply(op: str, *args: Number) -> Number:
    """Apply an operation. Return a float if all arguments are floats, else an expression."""
    for a in args:
        if type(a) is Scalar:
            return a.arena.build(op, *args)
    return OPS[op].value(*args)


def sqrt(x: Number) -> Number:
    """Return the square root, or NaN for a negative number.

    Parameters
    ----------
    x : Number
        Float or expression.

    Returns
    -------
    root : Number
        Square root, a float if x is a float.

    Examples
    --------
    >>> from chasles import expr
    >>> expr.sqrt(9.0)
    3.0
    """
    return apply("sqrt", x)


def sin(x: Number) -> Number:
    """Return the sine of an angle.

    Parameters
    ----------
    x : Number
        Angle (rad).

    Returns
    -------
    sine : Number
        Sine, a float if x is a float.

    Examples
    --------
    >>> from chasles import expr
    >>> expr.sin(0.0)
    0.0
    """
    return apply("sin", x)


def cos(x: Number) -> Number:
    """Return the cosine of an angle.

    Parameters
    ----------
    x : Number
        Angle (rad).

    Returns
    -------
    cosine : Number
        Cosine, a float if x is a float.

    Examples
    --------
    >>> from chasles import expr
    >>> expr.cos(0.0)
    1.0
    """
    return apply("cos", x)


def atan2(y: Number, x: Number) -> Number:
    """Return the angle from the x axis to the point (x, y), in [-pi, pi].

    Parameters
    ----------
    y, x : Number
        Coordinates of the point.

    Returns
    -------
    angle : Number
        Angle (rad), a float if both coordinates are floats.

    Examples
    --------
    >>> from chasles import expr
    >>> round(expr.atan2(1.0, 0.0), 6)
    1.570796
    """
    return apply("atan2", y, x)


def minimum(a: Number, b: Number) -> Number:
    """Return the smaller of two numbers, or NaN if either is NaN.

    Parameters
    ----------
    a, b : Number
        Floats or expressions.

    Returns
    -------
    smaller : Number
        The smaller number.

    Examples
    --------
    >>> from chasles import expr
    >>> expr.minimum(1.0, 2.0)
    1.0
    """
    return apply("min", a, b)


def maximum(a: Number, b: Number) -> Number:
    """Return the larger of two numbers, or NaN if either is NaN.

    Parameters
    ----------
    a, b : Number
        Floats or expressions.

    Returns
    -------
    larger : Number
        The larger number.

    Examples
    --------
    >>> from chasles import expr
    >>> expr.maximum(1.0, 2.0)
    2.0
    """
    return apply("max", a, b)


def absolute(x: Number) -> Number:
    """Return the absolute value.

    Parameters
    ----------
    x : Number
        Float or expression.

    Returns
    -------
    size : Number
        Absolute value.

    Examples
    --------
    >>> from chasles import expr
    >>> expr.absolute(-2.0)
    2.0
    """
    return apply("abs", x)


def less(a: Number, b: Number) -> Number:
    """Return 1.0 if a < b, else 0.0.

    Parameters
    ----------
    a, b : Number
        Floats or expressions.

    Returns
    -------
    result : Number
        Condition for `select`; 0.0 if a or b is NaN.

    Examples
    --------
    >>> from chasles import expr
    >>> expr.less(1.0, 2.0)
    1.0
    """
    return apply("less", a, b)


def less_equal(a: Number, b: Number) -> Number:
    """Return 1.0 if a <= b, else 0.0.

    Parameters
    ----------
    a, b : Number
        Floats or expressions.

    Returns
    -------
    result : Number
        Condition for `select`; 0.0 if a or b is NaN.

    Examples
    --------
    >>> from chasles import expr
    >>> expr.less_equal(2.0, 2.0)
    1.0
    """
    return apply("less_equal", a, b)


def equal(a: Number, b: Number) -> Number:
    """Return 1.0 if a == b, else 0.0.

    Parameters
    ----------
    a, b : Number
        Floats or expressions.

    Returns
    -------
    result : Number
        Condition for `select`; 0.0 if a or b is NaN.

    Examples
    --------
    >>> from chasles import expr
    >>> expr.equal(1.0, 2.0)
    0.0
    """
    return apply("equal", a, b)


def select(condition: Number, a: Number, b: Number) -> Number:
    """Return a if the condition is nonzero, and b otherwise.

    Parameters
    ----------
    condition : Number
        Result of `less`, `less_equal` or `equal`.
    a, b : Number
        Floats or expressions. Both are always evaluated, so their divisions and square roots must
        be valid for any condition.

    Returns
    -------
    result : Number
        The value a or b.

    Examples
    --------
    >>> from chasles import expr
    >>> expr.select(expr.less(1.0, 2.0), 10.0, 20.0)
    10.0
    """
    return apply("select", condition, a, b)
