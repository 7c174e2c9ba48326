"""Couplings between coordinates, velocities and frames, and prescribed joint motions.

Couplings and motions are user-defined functions that use `chasles.expr`. Each function is traced
once, and its time derivatives are computed from the traced program.
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
from chasles.model.given import value_fault
from chasles.model.joints import Joint


def coupling(
    name: str,
    freedoms: Sequence[str],
    function: Callable[..., Number | Sequence[Number]],
    *,
    rates: Sequence[str] = (),
    frames: Sequence[str] = (),
    where: str = "",
) -> CouplingData:
    """Create a coupling of coordinates, velocities and frames, defined by function(...) = 0.

    Parameters
    ----------
    name : str
        Name of the coupling.
    freedoms : sequence of str
        Names of coordinates: "joint", or "joint[k]" for a joint with several coordinates.
        Coordinates of planar, spherical and free joints have names such as "base[x]" and "base[qw]"
        (`chasles.conventions`).
    function : callable
        Function of the coordinates, rates and frames, in this order, in rad, m and s. Each frame is
        passed as a `FrameState`. If the last argument is called t, it is the time. The function
        returns one or more residuals, which are zero where the coupling holds.
    rates : sequence of str, optional
        Names of velocities, such as "base[3]" (as in `robot.independent`).
    frames : sequence of str, optional
        Names of links and frames.
    where : str, optional
        File and line of the coupling, for error messages.

    Returns
    -------
    coupling : CouplingData
        The coupling, for `Robot.with_couplings` and `Description`.

    Raises
    ------
    ModelError
        If names are repeated or missing, if the function fails for symbolic arguments, or if it
        does not return numbers.

    Notes
    -----
    A residual without velocities constrains positions (holonomic). A residual with velocities
    constrains only velocities (nonholonomic) and must be linear in them; examples are knife edges
    and rolling wheels (Featherstone 2008, Eq 3.29, 3.30). The function is called once, with
    symbolic arguments, and must use arithmetic and the functions of `chasles.expr` (sin, cos, sqrt,
    atan2, ...). The function should be smooth, and its gradient should not vanish where the
    function is zero.

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
            problem = f"a coupling needs distinct coordinates, velocities or frames, not {given!r}"
            raise uncoupled("E-LOOP-025", problem, "name at least one, without repetition")
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
        problem = (
            f"the function failed for symbolic arguments: {type(error).__name__}: {said(error)}"
        )
        count = len(numbers) + len(states)
        remedy = (
            f"define the function with one argument for each of the {count} coordinates, "
            "velocities and frames, and import sin, sqrt and other functions from chasles.expr"
        )
        raise uncoupled("E-LOOP-026", problem, remedy) from error
    rows = [result] if is_number(result) or not isinstance(result, Iterable) else list(result)
    if not rows or not all(map(is_number, rows)):
        problem = f"the function returned {result!r:.60}"
        remedy = "return one or more residuals, which are zero where the coupling holds"
        raise uncoupled("E-LOOP-027", problem, remedy)
    residual = _program(inputs, rows, shape=() if is_number(result) else (len(rows),))
    for code, problem, remedy in _faults(residual, (*names, *velocities, *places)):
        raise uncoupled(code, problem, remedy)
    return CouplingData(name, names, residual, where, velocities, places)


def _inputs(freedoms: int, rates: int, frames: int, *, timed: bool) -> list[Variable]:
    """Return the inputs of a coupling's program, excluding inputs of size zero."""
    sizes = {"q": freedoms, "v": rates, "pose": POSE * frames, "twist": TWIST * frames}
    found = [Variable(key, (n,)) for key, n in sizes.items() if n]
    return found + [Variable("t", ())] * timed


def _program(
    inputs: Sequence[Variable], rows: Sequence[Number], *, shape: tuple[int, ...] = ()
) -> Program:
    return Program.from_outputs("coupling", inputs, [(Variable("residual", shape), rows)])


def _faults(residual: Program, names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the error code, problem and remedy for each invalid property of a residual."""
    by_velocity = slopes(residual)
    if set().union(*taken(by_velocity)) & set(MOVING):
        problem = "the residual is not linear in the velocities"
        yield "E-LOOP-320", problem, "return a sum of velocities times functions of position"
    if not all(row - {"t"} for row in taken(residual)):
        problem = f"the residual does not depend on {', '.join(map(repr, names))}"
        yield "E-LOOP-028", problem, "return an expression in these coordinates"
    if not has_values(residual):
        problem = f"the residual is not finite at any of {TRIES} configurations near zero"
        yield "E-LOOP-029", problem, "check for division by zero and roots of negative numbers"


def gear(
    name: str, joint: str, ratios: Mapping[str, float], offset: float = 0.0, *, where: str = ""
) -> CouplingData:
    """Create a gear or differential: joint = sum(ratio * leader) + offset.

    Parameters
    ----------
    name : str
        Name of the coupling.
    joint : str
        Joint that follows the leaders.
    ratios : mapping
        Ratio of the follower's to the leader's displacement, for each leading joint ("joint[k]" for
        a joint with several coordinates).
    offset : float, optional
        Offset (rad or m).
    where : str, optional
        File and line of the coupling, for error messages.

    Returns
    -------
    coupling : CouplingData
        The coupling, for `Robot.with_couplings` and `Description`.

    Raises
    ------
    ModelError
        If a ratio or the offset is out of range, or if a joint is named twice.

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
    """Return a and c of a linear residual a . q + c, or None if the residual is not linear."""
    if data.timed or not data.plain:
        return None
    by_rate = slopes(data.residual)
    if any(by_rate.code[r].op != "const" for r in by_rate.results[0]):
        return None
    (constant,) = replayed(data.residual, {"q": [0.0] * len(data.freedoms)})
    return [by_rate.code[r].data for r in by_rate.results[0]], float(constant)


def held(data: CouplingData, values: Mapping[str, Number], still: Container[str]) -> CouplingData:
    """Return a coupling with some coordinates fixed and some velocities set to zero.

    `values` maps names of fixed coordinates to their values, and `still` contains the names of
    velocities that are set to zero. The number of equations does not change. The result may have no
    inputs.
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


# Polynomials, which can be saved to files --------------------------------------------------------

Powers = tuple[int, ...]
"""Exponents of all coordinates and velocities in a monomial."""

Terms = dict[Powers, float]
"""A polynomial, as a mapping from exponents to coefficients."""


def terms(data: CouplingData) -> Terms | None:
    """Return the residual as a polynomial in coordinates and velocities.

    Return None if the residual is not a polynomial, depends on time or frames, or has several
    equations.
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
    """Create a coupling that sets a polynomial in coordinates (rad, m) and velocities to zero.

    Each row is a monomial: a coefficient, and the exponent of each coordinate by name. Names that
    end in ' denote velocities. Coordinates and velocities keep the order in which they first
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
    """Return the monomials of a polynomial coupling, or None for other couplings."""
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
        rows[0] = rows[0][0], dict.fromkeys(names, 0) | rows[0][1]  # keep the order
    return rows


# Prescribed motions ------------------------------------------------------------------------------

Motion = Callable[[Number], Number | Sequence[Number]]
"""Function of time that returns a joint's coordinate, or a sequence of all its coordinates."""


def motion(function: Motion, *, joint: str = "") -> Program:
    """Create a prescribed motion q = function(t) for `JointData(motion=...)`.

    Parameters
    ----------
    function : callable
        Function of the time (s) that returns a number, or a sequence of all coordinates of the
        joint, in rad and m. Quaternions need not have unit length. The function is called once,
        with a symbolic time. The function should be smooth, and must use arithmetic and the
        functions of `chasles.expr`.
    joint : str, optional
        Name of the joint, for error messages.

    Returns
    -------
    program : Program
        The traced function.

    Raises
    ------
    ArgumentError
        If `function` is not a function.
    ModelError
        If the function fails for a symbolic time, does not return numbers, or is not finite at any
        time that is tried.

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
            "E-JOINT-011", problem, "pass a function of time: lambda t: ...", part=at
        )
    try:
        given = function(Arena(RULES).input("t", 0))
    except Exception as error:
        problem = f"the function failed for a symbolic time: {type(error).__name__}: {said(error)}"
        remedy = (
            "define a function of time only, "
            "and import sin, sqrt and other functions from chasles.expr"
        )
        raise ModelError("E-JOINT-012", problem, remedy, part=at) from error
    entries = [given] if is_number(given) or not isinstance(given, Iterable) else list(given)
    if not all(map(is_number, entries)):
        remedy = "return one number, or one per coordinate of the joint"
        raise ModelError("E-JOINT-013", f"the function returned {given!r:.60}", remedy, part=at)
    outputs = [(Variable("q", (len(entries),)), entries)]
    program = Program.from_outputs("motion", [Variable("t", ())], outputs)
    if not has_values(program):
        problem = f"the function is not finite at any of {TRIES} times between -3 s and 3 s"
        remedy = "check for division by zero and roots of negative numbers"
        raise ModelError("E-JOINT-014", problem, remedy, part=at)
    return program


@dataclass(frozen=True)
class Drive:
    """Prescribed motion of a joint.

    `ratio` and `offset` modify the motion for a joint that mimics another joint. `t` is the time:
    None before evaluation, and a symbol while a function is traced.
    """

    motion: Program
    t: Number | None = None
    ratio: float = 1.0
    offset: float = 0.0

    def position(self) -> Vector:
        """Return the joint's coordinates at the time `t`."""
        return self._at(self._time)

    def rate(self, joint: Joint, order: int) -> Vector:
        """Return the joint velocity (order 1), acceleration (order 2) and so on.

        For order 0, the result is zero.
        """
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
        """Return the prescribed motion of a mimic joint whose leader has this motion."""
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
