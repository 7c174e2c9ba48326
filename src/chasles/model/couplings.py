"""Equations between coordinates, velocities and frames, and prescribed joint motions.

Each is a user-defined function, written with the functions of `chasles.expr` and traced once. Its
derivatives for velocities and accelerations are computed from the traced program.
"""

import inspect
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from chasles.errors import ArgumentError, ModelError, said
from chasles.expr import RULES, Arena, Number, Program, Variable, is_number
from chasles.mathematics.derivatives import TRIES, by_time, has_values, replayed
from chasles.mathematics.linear import Vector
from chasles.model.constraints import (
    MOVING,
    POSE,
    TWIST,
    frame_states,
    slopes,
    taken,
)
from chasles.model.description import CouplingData
from chasles.model.joints import Joint
from chasles.model.ranges import value_fault


def coupling(
    name: str,
    freedoms: Sequence[str],
    function: Callable[..., Number | Sequence[Number]],
    *,
    rates: Sequence[str] = (),
    frames: Sequence[str] = (),
    where: str = "",
) -> CouplingData:
    """Return equations function(...) = 0 between coordinates, velocities and frames.

    Parameters
    ----------
    name : str
        Name of the coupling.
    freedoms : sequence of str
        Names of coordinates: the joint, with [k] for a joint with several coordinates. Coordinates
        of planar, spherical and free joints have names such as "base[x]" and "base[qw]"
        (`chasles.conventions`).
    function : callable
        Takes the values of coordinates, rates and frames in this order, in rad, m and s, each frame
        as a `FrameState`, and the time if its last argument is called t. It returns one or several
        numbers, which are zero where the equations hold.
    rates : sequence of str, optional
        Velocities, as `robot.independent` names them: "base[3]".
    frames : sequence of str, optional
        Links and frames.
    where : str, optional
        File and line of the coupling, for error messages.

    Returns
    -------
    coupling : CouplingData
        The coupling, for `Robot.with_couplings` and `Description`.

    Notes
    -----
    A row without velocities constrains positions (holonomic). A row with velocities
    constrains only velocities (nonholonomic) and must be linear in them; examples are knife edges
    and rolling (Featherstone 2008, Eq 3.29, 3.30). The function uses arithmetic and the functions
    of `chasles.expr` (sin, cos, sqrt, atan2, ...) and is called once, with symbols. It should be
    smooth, and its gradient should not vanish where the function is zero.

    Examples
    --------
    >>> import chasles
    >>> cam = chasles.model.coupling("cam", ["joint1", "joint2"], lambda a, b: b - a * a)
    >>> chasles.robots.planar(2).with_couplings(cam).mobility().mobility
    1
    """
    names, velocities, places = (
        (given,) if isinstance(given, str) else tuple(given) for given in (freedoms, rates, frames)
    )

    def uncoupled(code: str, problem: str, remedy: str) -> ModelError:
        return ModelError(code, problem, remedy, part=f"coupling {name!r}", file=where)

    for given in (names, velocities, places):
        if len(set(given)) < len(given) or not (names or velocities or places):
            problem = f"its coordinates, velocities or frames are missing or repeated: {given!r}"
            raise uncoupled("E-LOOP-025", problem, "name at least one, each once")
    timed = list(inspect.signature(function).parameters)[-1:] == ["t"]
    inputs = _inputs(len(names), len(velocities), len(places), timed=timed)
    arena = Arena(RULES)
    symbols: dict[str, list[Number]] = {
        v.name: [arena.input(v.name, k) for k in range(v.size)] for v in inputs
    }
    states = frame_states(symbols.get("pose", []), symbols.get("twist", []))
    numbers = [x for key in ("q", "v") for x in symbols.get(key, [])]
    try:
        result = function(*numbers, *states, *symbols.get("t", []))
    except Exception as error:
        problem = f"its function failed on symbols: {type(error).__name__}: {said(error)}"
        arguments = [f"{len(numbers)} numbers"] + [f"{len(states)} frames"] * bool(states)
        arguments += ["t"] * timed
        remedy = f"accept {' and '.join(arguments)} as arguments"
        remedy += ", and use the functions of chasles.expr"
        raise uncoupled("E-LOOP-026", problem, remedy) from error
    rows = [result] if is_number(result) or not isinstance(result, Iterable) else list(result)
    if not rows or not all(map(is_number, rows)):
        problem = f"its function returned {result!r:.60}"
        remedy = "return one number: the residual, which is zero where the coupling holds"
        raise uncoupled("E-LOOP-027", problem, remedy)
    residual = _program(inputs, rows, shape=() if is_number(result) else (len(rows),))
    for code, problem, remedy in _faults(residual, (*names, *velocities, *places)):
        raise uncoupled(code, problem, remedy)
    return CouplingData(name, names, residual, where, velocities, places)


def _inputs(freedoms: int, rates: int, frames: int, *, timed: bool) -> list[Variable]:
    """Return the inputs of a coupling's program; empty inputs are omitted."""
    sizes = {"q": freedoms, "v": rates, "pose": POSE * frames, "twist": TWIST * frames}
    found = [Variable(key, (n,)) for key, n in sizes.items() if n]
    return found + [Variable("t", ())] * timed


def _program(
    inputs: Sequence[Variable], rows: Sequence[Number], *, shape: tuple[int, ...] = ()
) -> Program:
    return Program.from_outputs("coupling", inputs, [(Variable("residual", shape), rows)])


def _faults(residual: Program, names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield code, problem and remedy for each reason why a residual is not a valid equation."""
    by_velocity = slopes(residual)
    if set().union(*taken(by_velocity)) & set(MOVING):
        problem = "its residual is not linear in the velocities"
        yield "E-LOOP-320", problem, "return a sum of velocities times functions of position"
    if not all(row - {"t"} for row in taken(residual)):
        problem = f"its residual does not depend on {', '.join(map(repr, names))}"
        yield "E-LOOP-028", problem, "return an expression in these coordinates"
    if not has_values(residual):
        problem = f"its residual is not finite at any of {TRIES} configurations within 3 rad or m"
        yield "E-LOOP-029", problem, "check its function"


def gear(
    name: str, joint: str, ratios: Mapping[str, float], offset: float = 0.0, *, where: str = ""
) -> CouplingData:
    """Return the coupling of a gear or differential: joint = sum of ratio * leader + offset.

    Parameters
    ----------
    name : str
        Name of the coupling.
    joint : str
        Joint that follows the leaders.
    ratios : mapping
        Ratio for each leading joint (with [k] for a joint with several coordinates), in units of
        the follower's coordinate per unit of the leader's.
    offset : float, optional
        Offset (rad or m).
    where : str, optional
        File and line of the coupling, for error messages.

    Returns
    -------
    coupling : CouplingData
        The coupling, for `Robot.with_couplings` and `Description`.

    Examples
    --------
    >>> import chasles
    >>> gear = chasles.model.gear("gear", "joint2", {"joint1": -2.0})
    >>> chasles.robots.planar(2).with_couplings(gear).assemble([0.1]).round(3)
    array([ 0.1, -0.2])
    """
    given = [("gear.ratio", ratio, f" to {leader!r}") for leader, ratio in ratios.items()]
    for key, number, of in [*given, ("gear.offset", offset, "")]:
        if fault := value_fault(key, number):
            raise ModelError("E-LOOP-030", fault, part=f"coupling {name!r}{of}")

    def residual(follower: Number, *leaders: Number) -> Number:
        driven: Number = offset
        for ratio, leader in zip(ratios.values(), leaders, strict=True):
            driven = driven + ratio * leader
        return follower - driven

    return coupling(name, (joint, *ratios), residual, where=where)


def linear(data: CouplingData) -> tuple[list[float], float] | None:
    """Return the factors a and the constant c of a residual a . q + c, or None if nonlinear."""
    if data.timed or not data.plain:
        return None
    by_rate = slopes(data.residual)
    if any(by_rate.code[r].op != "const" for r in by_rate.results[0]):
        return None
    (constant,) = replayed(data.residual, {"q": [0.0] * len(data.freedoms)})
    return [by_rate.code[r].data for r in by_rate.results[0]], float(constant)


def held(data: CouplingData, values: Mapping[str, Number], still: Container[str]) -> CouplingData:
    """Return the coupling with some coordinates fixed at values and some velocities zero.

    values: fixed coordinates by name. still: names of velocities that are zero. The result has the
    same rows and may have no inputs.
    """
    names = tuple(name for name in data.freedoms if name not in values)
    rates = tuple(name for name in data.rates if name not in still)
    inputs = _inputs(len(names), len(rates), len(data.frames), timed=data.timed)
    arena = Arena(RULES)
    given: dict[str, list[Number]] = {
        v.name: [arena.input(v.name, k) for k in range(v.size)] for v in inputs
    }
    own = dict(zip(names, given.get("q", []), strict=True)) | dict(values)
    moving = dict(zip(rates, given.get("v", []), strict=True))
    given |= {"q": [own[name] for name in data.freedoms]}
    given |= {"v": [moving.get(name, 0.0) for name in data.rates]}
    rows = data.residual.applied(given, arena)[0]
    residual = _program(inputs, rows, shape=data.residual.outputs[0].shape)
    return replace(data, freedoms=names, rates=rates, residual=residual)


# Polynomials, which files can represent ----------------------------------------------------------

Powers = tuple[int, ...]
"""Exponent of each coordinate, in order."""

Terms = dict[Powers, float]
"""A polynomial: the factor of each monomial, given by its exponents."""


def terms(data: CouplingData) -> Terms | None:
    """Return the residual as a polynomial in coordinates and rates.

    The result is None if the residual is not a polynomial, or depends on time.
    """
    if data.timed or data.frames or data.rows != 1:
        return None
    starts = {"q": 0, "v": len(data.freedoms)}
    count = len(data.freedoms) + len(data.rates)
    constant = (0,) * count
    values: list[Terms] = []
    for op, args, number in data.residual.code:
        given = [values[a] for a in args]
        if op == "input":
            own = starts[data.residual.inputs[number[0]].name] + number[1]
            values.append({tuple(int(k == own) for k in range(count)): 1.0})
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
    """Return the coupling that sets a polynomial in coordinates (rad, m) and rates to zero.

    Each row of the table is a monomial: its factor, and the power of each coordinate by name. A
    name that ends in ' is a velocity. Coordinates and velocities keep the order in which they first
    appear.
    """
    names = list(dict.fromkeys(freedom for _, powers in rows for freedom in powers))
    freedoms = [each for each in names if not each.endswith("'")]
    rates = [each for each in names if each.endswith("'")]

    def residual(*q: Number) -> Number:
        at = dict(zip((*freedoms, *rates), q, strict=True))
        total: Number = 0.0
        for factor, powers in rows:
            bases = [at[freedom] for freedom, power in powers.items() for _ in range(power)]
            total = total + factor * math.prod(bases)
        return total

    speeds = [rate.removesuffix("'") for rate in rates]
    return coupling(name, freedoms, residual, rates=speeds, where=where)


def polynomial_rows(data: CouplingData) -> list[tuple[float, dict[str, int]]] | None:
    """Return the rows of the polynomial of a coupling, or None if it is not a polynomial."""
    found = terms(data)
    if found is None:
        return None
    names = (*data.freedoms, *(f"{rate}'" for rate in data.rates))
    rows = [
        (factor, {name: n for name, n in zip(names, powers, strict=True) if n})
        for powers, factor in found.items()
    ]
    said = dict.fromkeys(name for _, row in rows for name in row)
    if sorted(said, key=lambda name: name.endswith("'")) != list(names):
        rows[0] = rows[0][0], dict.fromkeys(names, 0) | rows[0][1]  # keeps the order of names
    return rows


# Prescribed motions ------------------------------------------------------------------------------

Motion = Callable[[Number], Number | Sequence[Number]]
"""Function of time that returns the coordinate of a joint, or all coordinates if it has several."""


def motion(function: Motion, *, joint: str = "") -> Program:
    """Return the prescribed motion q = function(t) of a joint, for `JointData(motion=...)`.

    Parameters
    ----------
    function : callable
        Takes the time (s) and returns the joint's coordinates in rad and m (four for a quaternion
        of any length), or a single number. It may use arithmetic and the functions of
        `chasles.expr`. It is called once, with a symbol, and should be smooth.
    joint : str, optional
        Name of the joint in error messages.

    Returns
    -------
    program : Program
        The traced function.

    Examples
    --------
    >>> import chasles
    >>> from chasles.expr import sin
    >>> type(chasles.model.motion(lambda t: 0.1 * sin(t))).__name__
    'Program'
    """
    at = f"joint {joint!r}: motion" if joint else "motion"
    if not callable(function):
        problem = f"{function!r:.60} is not a function"
        raise ArgumentError(
            "E-JOINT-011", problem, "give a function of time: lambda t: ...", part=at
        )
    try:
        given = function(Arena(RULES).input("t", 0))
    except Exception as error:
        problem = f"the function failed on a symbol: {type(error).__name__}: {said(error)}"
        remedy = "accept one number (the time) as argument, and use the functions of chasles.expr"
        raise ModelError("E-JOINT-012", problem, remedy, part=at) from error
    entries = [given] if is_number(given) or not isinstance(given, Iterable) else list(given)
    if not all(map(is_number, entries)):
        remedy = "return one number, or one per coordinate of the joint"
        raise ModelError("E-JOINT-013", f"the function returned {given!r:.60}", remedy, part=at)
    outputs = [(Variable("q", (len(entries),)), entries)]
    program = Program.from_outputs("motion", [Variable("t", ())], outputs)
    if not has_values(program):
        problem = f"the function is not finite at any of {TRIES} times within 3 s of 0"
        raise ModelError("E-JOINT-014", problem, "check the function", part=at)
    return program


@dataclass(frozen=True)
class Drive:
    """Prescribed motion of a joint.

    ratio, offset: applied to the motion, for a joint that mimics another. t: the time. It is a
    symbol while a function is traced, and None before evaluation.
    """

    motion: Program
    t: Number | None = None
    ratio: float = 1.0
    offset: float = 0.0

    def position(self) -> Vector:
        """Return the joint's coordinates."""
        return self._at(self._time)

    def rate(self, joint: Joint, order: int) -> Vector:
        """Return the joint's velocity (order 1), acceleration (2), ..., or zero for order 0."""
        return _rate(self._at, joint, order, self._time)

    def _at(self, t: Number) -> Vector:
        q = Vector(tuple(replayed(self.motion, {"t": [t]})))
        plain = self.ratio == 1.0 and self.offset == 0.0
        return q if plain else q * self.ratio + Vector.of(self.offset)

    @property
    def _time(self) -> Number:
        assert self.t is not None, "the time is needed to evaluate this mechanism"
        return self.t

    def geared(self, ratio: float, offset: float) -> "Drive":
        """Return the prescribed motion of a joint that mimics this one."""
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
