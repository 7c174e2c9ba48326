"""Joints whose motion is given in time (rheonomic): coordinates, and their rates of any order."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from chasles.errors import ArgumentError, ModelError, said
from chasles.expr import RULES, Arena, Number, Program, Variable, is_number
from chasles.mathematics.derivatives import TRIES, by_time, has_values, replayed
from chasles.mathematics.linear import Vector
from chasles.model.joints import Joint

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
    """What a driven joint does instead of having coordinates.

    t: the time; a symbol while a function is traced, none as long as nothing is asked. ratio,
    offset: of a joint that mimics the one of this motion.
    """

    motion: Program
    t: Number | None = None
    ratio: float = 1.0
    offset: float = 0.0

    def position(self) -> Vector:
        """The joint's coordinates."""
        return self._at(self._time)

    def rate(self, joint: Joint, order: int) -> Vector:
        """The joint's velocity (order 1), acceleration (2) and so on; of a step (0) none.

        The velocity v is that of difference(q(t), q(t + s)) with s, whether rates of q or not.
        """
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
