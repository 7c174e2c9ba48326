"""Gears and other equations between coordinates, written once with the functions of `chasles.expr`.

The derivatives that velocities and accelerations need follow from the program of the equation.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from chasles.expr import RULES, Arena, Number, Program, Scalar, Variable, forward, is_number
from chasles.expr import jacobian as derivatives
from chasles.mathematics.linear import Matrix, Vector
from chasles.model.description import CouplingData, ModelError

_TRIES = 64
"""Positions at which a coupling is tried; it is in earnest where none gives a number."""


def coupling(
    name: str, freedoms: Sequence[str], function: Callable[..., Number], *, where: str = ""
) -> CouplingData:
    """The equation function(q1, q2, ...) = 0 between the coordinates of some joints.

    freedoms: joints, with [k] where one has several coordinates; only of joints whose velocities
    are the rates of their coordinates (not planar, spherical or free ones). function: takes their
    coordinates, in rad and m, and is written with arithmetic and the functions of `chasles.expr`
    (sin, cos, sqrt, atan2, ...); it is run once, on symbols. It should be smooth, and its slope not
    vanish where it is zero.
    """
    names = tuple(freedoms) if not isinstance(freedoms, str) else (freedoms,)
    if not names or len(set(names)) < len(names):
        raise ModelError(f"coupling {name!r}: name one or more freedoms, each once, not {names!r}")
    arena = Arena(RULES)
    try:
        result = function(*(arena.input("q", k) for k in range(len(names))))
    except Exception as error:
        raise ModelError(
            f"coupling {name!r}: its function failed on symbols, {type(error).__name__}: {error}; "
            f"let it take {len(names)} numbers, and write it with the functions of chasles.expr"
        ) from error
    if not is_number(result):
        raise ModelError(
            f"coupling {name!r}: its function gives {result!r:.60}; return one number, the "
            "residual that is zero where the coupling holds"
        )
    if not isinstance(result, Scalar):
        raise ModelError(
            f"coupling {name!r}: its residual does not change with {', '.join(map(repr, names))}; "
            "return an expression of them"
        )
    program = _program(names, result)
    rng = random.Random(1)
    tried = [[rng.uniform(-3.0, 3.0) for _ in names] for _ in range(_TRIES)]
    if not any(math.isfinite(_values(program, {"q": x})[0]) for x in tried):
        raise ModelError(
            f"coupling {name!r}: its residual is no finite number at any of {_TRIES} positions "
            f"within 3 rad or m; check its function"
        )
    return CouplingData(name, names, program, where)


def _program(freedoms: Sequence[str], residual: Number) -> Program:
    outputs = [(Variable("residual", ()), [residual])]
    return Program.from_outputs("coupling", [Variable("q", (len(freedoms),))], outputs)


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
            raise ModelError(f"coupling {name!r}: its {what} is {number!r}; give a finite number")

    def residual(follower: Number, *leaders: Number) -> Number:
        driven: Number = offset
        for ratio, leader in zip(ratios.values(), leaders, strict=True):
            driven = driven + ratio * leader
        return follower - driven

    return coupling(name, (joint, *ratios), residual, where=where)


def linear(data: CouplingData) -> tuple[list[float], float] | None:
    """The factors a and the constant c of a residual a . q + c; None where it is no such sum."""
    slopes = _slopes(data.residual)
    if any(slopes.code[r].op != "const" for r in slopes.results[0]):
        return None
    constant = residual_at(data, dict.fromkeys(data.freedoms, 0.0))
    return [slopes.code[r].data for r in slopes.results[0]], float(constant)


def residual_at(data: CouplingData, values: Mapping[str, Number]) -> Number:
    """The residual where its coordinates have these values (by freedom)."""
    return _values(data.residual, {"q": [values[name] for name in data.freedoms]})[0]


def held(data: CouplingData, values: Mapping[str, Number]) -> CouplingData:
    """The coupling with some of its coordinates held at values (by freedom)."""
    free = tuple(name for name in data.freedoms if name not in values)
    arena = Arena(RULES)
    symbols: dict[str, Number] = {name: arena.input("q", k) for k, name in enumerate(free)}
    residual = residual_at(data, {**values, **symbols})
    return replace(data, freedoms=free, residual=_program(free, residual))


@dataclass(frozen=True)
class Coupling:
    """A coupling of a model.

    places: for each coordinate, the body and which of the coordinates of its joint it is.
    """

    places: tuple[tuple[int, int], ...]
    data: CouplingData

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
        """phi(q), which is zero where the coupling holds."""
        return Vector(tuple(_values(self.data.residual, {"q": self._of(q)})))

    def matrix(self, q: Mapping[int, Vector]) -> dict[int, Matrix]:
        """K = d phi / d q, by body (Featherstone 2008, Eq 3.11)."""
        rows: dict[int, list[Number]] = {i: [0.0] * len(q[i]) for i in self.bodies}
        slopes = _values(_slopes(self.data.residual), {"q": self._of(q)})
        for (i, k), slope in zip(self.places, slopes, strict=True):
            rows[i][k] = slope
        return {i: Matrix((tuple(row),)) for i, row in rows.items()}

    def bias(self, q: Mapping[int, Vector], qd: Mapping[int, Vector]) -> Vector:
        """k = -dK/dt qd, so that K qdd = k keeps K qd constant (Eq 3.11)."""
        speeds = self._of(qd)
        rates = _values(_rates(self.data.residual), {"q": self._of(q), "d_q": speeds})
        return -Vector.of(Vector(tuple(rates)).dot(Vector(tuple(speeds))))

    def _of(self, x: Mapping[int, Vector]) -> list[Number]:
        return [x[i][k] for i, k in self.places]


@cache
def _slopes(residual: Program) -> Program:
    return derivatives(residual, ["q"], mode="reverse")


@cache
def _rates(residual: Program) -> Program:
    """The derivative of the slopes along d_q."""
    return forward(_slopes(residual), ["q"])


def _values(program: Program, inputs: Mapping[str, Sequence[Number]]) -> list[Number]:
    """The entries of a program's output: numbers, or expressions in the trace of its inputs."""
    symbols = (x for entries in inputs.values() for x in entries if isinstance(x, Scalar))
    arena = next((x.arena for x in symbols), Arena(RULES))
    values = program.replay(inputs, arena)
    return [values[r] for r in program.results[0]]
