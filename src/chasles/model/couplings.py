"""Equations between coordinates, and motions of joints in time (rheonomic constraints).

Each is a function of the user's, written with the functions of `chasles.expr` and run once, on
symbols. The derivatives that velocities and accelerations need follow from its program.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain

from chasles.errors import ArgumentError, ModelError, said
from chasles.expr import RULES, Arena, Number, Program, Variable, forward, is_number
from chasles.expr import jacobian as derivatives
from chasles.mathematics.derivatives import TRIES, by_time, has_values, replayed
from chasles.mathematics.linear import Matrix, Vector
from chasles.model.description import CouplingData
from chasles.model.joints import Joint


def coupling(
    name: str, freedoms: Sequence[str], function: Callable[..., Number], *, where: str = ""
) -> CouplingData:
    """The equation function(q1, q2, ...) = 0 or function(q1, q2, ..., t) = 0 between coordinates.

    freedoms: joints, with [k] where one has several coordinates; only of joints whose velocities
    are the rates of their coordinates (not planar, spherical or free ones). function: takes their
    coordinates, in rad and m, and the time in s where its last argument is called t. It is written
    with arithmetic and the functions of `chasles.expr` (sin, cos, sqrt, atan2, ...) and run once,
    on symbols. It should be smooth, and its slope not vanish where it is zero.
    """
    names = tuple(freedoms) if not isinstance(freedoms, str) else (freedoms,)

    def uncoupled(code: str, problem: str, remedy: str) -> ModelError:
        return ModelError(code, problem, remedy, part=f"coupling {name!r}", file=where)

    if not names or len(set(names)) < len(names):
        raise uncoupled("E-LOOP-025", f"its freedoms are {names!r}", "name one or more, each once")
    arena = Arena(RULES)
    timed = list(inspect.signature(function).parameters)[-1:] == ["t"]
    moment = [arena.input("t", 0)] if timed else []
    try:
        result = function(*(arena.input("q", k) for k in range(len(names))), *moment)
    except Exception as error:
        problem = f"its function failed on symbols, {type(error).__name__}: {said(error)}"
        numbers = f"{len(names)} numbers{' and t' * timed}"
        remedy = f"let it take {numbers}, and write it with the functions of chasles.expr"
        raise uncoupled("E-LOOP-026", problem, remedy) from error
    if not is_number(result):
        problem = f"its function gives {result!r:.60}"
        remedy = "return one number, the residual that is zero where the coupling holds"
        raise uncoupled("E-LOOP-027", problem, remedy)
    residual = _program(names, result, timed=timed)
    if not any(i.op == "input" and i.data[0] == 0 for i in residual.code):
        problem = f"its residual does not change with {', '.join(map(repr, names))}"
        raise uncoupled("E-LOOP-028", problem, "return an expression of them")
    if not has_values(residual):
        problem = f"its residual is no finite number at any of {TRIES} positions within 3 rad or m"
        raise uncoupled("E-LOOP-029", problem, "check its function")
    return CouplingData(name, names, residual, where)


def _program(freedoms: Sequence[str], residual: Number, *, timed: bool) -> Program:
    inputs = [Variable("q", (len(freedoms),))] + [Variable("t", ())] * timed
    return Program.from_outputs("coupling", inputs, [(Variable("residual", ()), [residual])])


def gear(
    name: str, joint: str, ratios: Mapping[str, float], offset: float = 0.0, *, where: str = ""
) -> CouplingData:
    """joint = sum of ratio times leader, plus offset: a gear, or a differential of several leaders.

    ratios: by leading joint (with [k] where it has several coordinates), in units of the joint's
    coordinate for one of the leader's; offset in that of the joint.
    """
    numbers = {f"ratio of {leader!r}": ratio for leader, ratio in ratios.items()}
    for what, number in (numbers | {"offset": offset}).items():
        if not isinstance(number, float | int) or not math.isfinite(number):
            problem = f"its {what} is {number!r}"
            remedy = "give a finite number"
            raise ModelError("E-LOOP-030", problem, remedy, part=f"coupling {name!r}")

    def residual(follower: Number, *leaders: Number) -> Number:
        driven: Number = offset
        for ratio, leader in zip(ratios.values(), leaders, strict=True):
            driven = driven + ratio * leader
        return follower - driven

    return coupling(name, (joint, *ratios), residual, where=where)


def linear(data: CouplingData) -> tuple[list[float], float] | None:
    """The factors a and the constant c of a residual a . q + c; None where it is no such sum."""
    if data.timed:
        return None
    slopes = _slopes(data.residual)
    if any(slopes.code[r].op != "const" for r in slopes.results[0]):
        return None
    constant = residual_at(data, dict.fromkeys(data.freedoms, 0.0))
    return [slopes.code[r].data for r in slopes.results[0]], float(constant)


def residual_at(
    data: CouplingData, values: Mapping[str, Number], t: Number | None = None
) -> Number:
    """The residual where its coordinates have these values (by freedom), at a time."""
    q = [values[name] for name in data.freedoms]
    return replayed(data.residual, {"q": q, "t": [t]} if t is not None else {"q": q})[0]


def held(data: CouplingData, values: Mapping[str, Number]) -> CouplingData:
    """The coupling with some of its coordinates held at values (by freedom)."""
    free = tuple(name for name in data.freedoms if name not in values)
    arena = Arena(RULES)
    symbols: dict[str, Number] = {name: arena.input("q", k) for k, name in enumerate(free)}
    moment = arena.input("t", 0) if data.timed else None
    residual = residual_at(data, {**values, **symbols}, moment)
    return replace(data, freedoms=free, residual=_program(free, residual, timed=data.timed))


@dataclass(frozen=True)
class Coupling:
    """A coupling of a model. places: the body of each coordinate, and which of its joint's it is.

    t: the time, if the coupling depends on it; a symbol while a function is traced.
    """

    places: tuple[tuple[int, int], ...]
    data: CouplingData
    t: Number | None = None

    @property
    def name(self) -> str:
        return self.data.name

    @property
    def rows(self) -> int:
        """The number of equations."""
        return 1

    @property
    def bodies(self) -> tuple[int, ...]:
        """The bodies whose joints have the coordinates."""
        return tuple(dict.fromkeys(i for i, _ in self.places))

    def residual(self, q: Mapping[int, Vector]) -> Vector:
        """phi(q, t), which is zero where the coupling holds."""
        return Vector(tuple(replayed(self.data.residual, self._where(q))))

    def matrix(self, q: Mapping[int, Vector]) -> dict[int, Matrix]:
        """K = d phi / d q, by body (Featherstone 2008, Eq 3.11)."""
        rows: dict[int, list[Number]] = {i: [0.0] * len(q[i]) for i in self.bodies}
        slopes = replayed(_slopes(self.data.residual), self._where(q))
        for (i, k), slope in zip(self.places, slopes, strict=False):
            rows[i][k] = slope
        return {i: Matrix((tuple(row),)) for i, row in rows.items()}

    def drift(self, q: Mapping[int, Vector]) -> Vector:
        """d phi / d t, so that K qd + d phi / d t = 0 where the coupling keeps holding."""
        slopes = replayed(_slopes(self.data.residual), self._where(q))
        return Vector.of(slopes[len(self.places)] if self.data.timed else 0.0)

    def bias(self, q: Mapping[int, Vector], qd: Mapping[int, Vector]) -> Vector:
        """k = -dK/dt qd - d/dt(d phi / d t), so that K qdd = k keeps K qd + d phi / d t (3.11)."""
        speeds = {"d_q": self._of(qd)} | ({"d_t": [1.0]} if self.data.timed else {})
        rates = replayed(_rates(self.data.residual), self._where(q) | speeds)
        return -Vector.of(Vector(tuple(rates)).dot(Vector((*chain(*speeds.values()),))))

    def _where(self, q: Mapping[int, Vector]) -> dict[str, list[Number]]:
        """What its program takes."""
        if not self.data.timed:
            return {"q": self._of(q)}
        assert self.t is not None, "this coupling is asked for at no time"
        return {"q": self._of(q), "t": [self.t]}

    def _of(self, x: Mapping[int, Vector]) -> list[Number]:
        return [x[i][k] for i, k in self.places]


@cache
def _slopes(residual: Program) -> Program:
    """By the coordinates, then by time."""
    return derivatives(residual, _names(residual), mode="reverse")


@cache
def _rates(residual: Program) -> Program:
    """The derivative of the slopes along d_q and d_t."""
    return forward(_slopes(residual), _names(residual))


def _names(residual: Program) -> list[str]:
    return [variable.name for variable in residual.inputs]


# Polynomials: what files can hold ----------------------------------------------------------------

Powers = tuple[int, ...]
"""Of each of some freedoms, in order."""

Terms = dict[Powers, float]
"""A polynomial: the factor of each product of powers."""


def terms(data: CouplingData) -> Terms | None:
    """The residual as a polynomial in its freedoms; None where it is none, or depends on time."""
    if data.timed:
        return None
    count = len(data.freedoms)
    constant = (0,) * count
    values: list[Terms] = []
    for op, args, number in data.residual.code:
        given = [values[a] for a in args]
        if op == "input":
            values.append({tuple(int(k == number[1]) for k in range(count)): 1.0})
        elif op == "const":
            values.append({constant: number})
        elif op in ("add", "sub"):
            values.append(_sum(given[0], given[1], 1.0 if op == "add" else -1.0))
        elif op == "neg":
            values.append(_sum({}, given[0], -1.0))
        elif op == "mul":
            values.append(_product(*given))
        elif op == "div" and set(given[1]) == {constant}:
            values.append({powers: x / given[1][constant] for powers, x in given[0].items()})
        else:
            return None
    (result,) = data.residual.results[0]
    return {powers: factor for powers, factor in values[result].items() if factor}


def _sum(a: Terms, b: Terms, sign: float) -> Terms:
    return a | {powers: a.get(powers, 0.0) + sign * factor for powers, factor in b.items()}


def _product(a: Terms, b: Terms) -> Terms:
    found: Terms = {}
    for p, x in a.items():
        for q, y in b.items():
            powers = tuple(i + j for i, j in zip(p, q, strict=True))
            found[powers] = found.get(powers, 0.0) + x * y
    return found


def polynomial(
    name: str, rows: Sequence[tuple[float, Mapping[str, int]]], *, where: str = ""
) -> CouplingData:
    """The equation: a sum of factors times powers of coordinates (rad, m) is zero.

    rows: a factor, and the power of each freedom. Freedoms are in the order of the rows.
    """
    freedoms = list(dict.fromkeys(freedom for _, powers in rows for freedom in powers))

    def residual(*q: Number) -> Number:
        at = dict(zip(freedoms, q, strict=True))
        total: Number = 0.0
        for factor, powers in rows:
            bases = [at[freedom] for freedom, power in powers.items() for _ in range(power)]
            total = total + factor * math.prod(bases)
        return total

    return coupling(name, freedoms, residual, where=where)


# Motions in time ---------------------------------------------------------------------------------

Motion = Callable[[Number], Number | Sequence[Number]]
"""A joint's coordinate at time t, or its coordinates where it has several."""


def motion(function: Motion, *, joint: str = "") -> Program:
    """The motion q = function(t) of a joint, as `JointData(motion=...)` takes it.

    function: of the time in s, gives the joint's coordinates in rad and m (four of a quaternion,
    which need not be of unit length), as one number where it has one. It is run once, on a symbol,
    and written with arithmetic and the functions of `chasles.expr`; it should be smooth. joint: its
    name, in messages.
    """
    at = f"joint {joint!r}: motion" if joint else "motion"
    if not callable(function):
        problem = f"{function!r:.60} is no function"
        raise ArgumentError("E-JOINT-011", problem, "give one of the time, lambda t: ...", part=at)
    try:
        given = function(Arena(RULES).input("t", 0))
    except Exception as error:
        problem = f"the function failed on a symbol, {type(error).__name__}: {said(error)}"
        remedy = "let it take one number, the time, and write it with the functions of chasles.expr"
        raise ModelError("E-JOINT-012", problem, remedy, part=at) from error
    entries = [given] if is_number(given) or not isinstance(given, Iterable) else list(given)
    if not all(map(is_number, entries)):
        remedy = "return one number, or one for each coordinate of the joint"
        raise ModelError("E-JOINT-013", f"the function gives {given!r:.60}", remedy, part=at)
    outputs = [(Variable("q", (len(entries),)), entries)]
    program = Program.from_outputs("motion", [Variable("t", ())], outputs)
    if not has_values(program):
        problem = f"the function gives no finite number at any of {TRIES} times within 3 s of 0"
        raise ModelError("E-JOINT-014", problem, "check it", part=at)
    return program


@dataclass(frozen=True)
class Drive:
    """The motion of a driven joint. ratio, offset: of a joint that mimics the one of this motion.

    t: the time; a symbol while a function is traced, None before anything is asked.
    """

    motion: Program
    t: Number | None = None
    ratio: float = 1.0
    offset: float = 0.0

    def position(self) -> Vector:
        """The joint's coordinates."""
        return self._at(self._time)

    def rate(self, joint: Joint, order: int) -> Vector:
        """The joint's velocity (order 1), acceleration (2), ...; zero for a step (0)."""
        return _rate(self._at, joint, order, self._time)

    def _at(self, t: Number) -> Vector:
        q = Vector(tuple(replayed(self.motion, {"t": [t]})))
        plain = self.ratio == 1.0 and self.offset == 0.0
        return q if plain else q * self.ratio + Vector.of(self.offset)

    @property
    def _time(self) -> Number:
        assert self.t is not None, "this mechanism is asked for at no time"
        return self.t

    def geared(self, ratio: float, offset: float) -> "Drive":
        """The drive of a joint that mimics this one."""
        return replace(self, ratio=ratio * self.ratio, offset=ratio * self.offset + offset)


def _rate(q: Callable[[Number], Vector], joint: Joint, order: int, t: Number) -> Vector:
    if order == 0:
        return Vector.zero(joint.nv)

    def changed(s: Number, now: Vector) -> list[Number]:
        later = now[0] + s
        if order == 1:
            return list(joint.difference(q(now[0]), q(later)))
        return list(_rate(q, joint, order - 1, later))

    return Vector(tuple(by_time(changed, Vector.of(t))))
