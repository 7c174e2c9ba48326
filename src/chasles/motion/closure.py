"""Loops that the user closes in closed form: q as a function of the independent coordinates."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import call
from chasles.errors import InputError, ModelError
from chasles.expr import RULES, Arena, Number, Program, Variable, forward
from chasles.mechanisms import ImpossiblePosition
from chasles.motion.contract import Array, Machine

Gamma = Callable[..., Sequence[Number]]
"""gamma(y) or gamma(y, t): all of q from the independent coordinates, in the order of
`robot.independent`, and the time."""


class ClosureFunction:
    """q = gamma(y), qd = G yd, qdd = G ydd + g, for a robot with loops (Featherstone 2008, 8.11).

    Or q = gamma(y, t), qd = G yd + d gamma/dt, for a robot that depends on time: gamma's last
    argument is then called t. gamma is called once, on symbols; it is made of + - * / and of `sin`,
    `cos`, `atan2`, `sqrt`, `select` and the others of `chasles.expr`. It decides the branch. G and
    g are its derivatives. Every joint must have a q whose rates are its velocities (no spherical,
    planar or free joint).
    """

    def __init__(self, robot: Machine, gamma: Gamma) -> None:
        model, self.robot = robot.model, robot
        robot.mechanism.require_loops("ClosureFunction", "there is nothing to close")
        for i in model.movers:
            if not model.bodies[i].joint.additive:
                problem = (
                    f"joint {model.bodies[i].data.name!r} of robot {robot.name!r} has velocities "
                    "that are not rates of its q"
                )
                remedy = "leave the loops to simulate"
                raise ModelError("E-MOTION-026", problem, remedy, part="ClosureFunction")
        self.independent = robot.mechanism.loops.independent
        self._kernel = backends.compile(_program(gamma, len(self.independent), robot.nq))

    def __call__(self, y: Array, yd: Array = None, ydd: Array = None, *, t: Array = 0.0) -> Any:
        """q (..., nq) at y (..., n); with yd also qd, with ydd also qdd, as a tuple.

        t: the time (...), in s, of which a gamma(y) makes no use. Raises
        `chasles.ImpossiblePosition` where gamma has no value.
        """
        zero = np.zeros(len(self.independent))
        rates = [zero if rate is None else rate for rate in (yd, ydd)]
        found = call(self._kernel, "ClosureFunction", (y, *rates, t))
        bad = ~np.isfinite(found[0])
        if np.count_nonzero(bad) and np.all(np.isfinite(y)):
            where = tuple(int(k) for k in np.argwhere(bad)[0][:-1])
            problem = (
                "the closure function has no value at "
                f"{', '.join(map(repr, self.robot.independent))} = "
                f"{np.broadcast_to(y, (*bad.shape[:-1], len(zero)))[where].tolist()}"
            )
            raise ImpossiblePosition("E-MOTION-027", problem, part=f"robot {self.robot.name!r}")
        if yd is None and ydd is None:
            return found[0]
        return found[:2] if ydd is None else found


def _program(gamma: Gamma, n: int, nq: int) -> Program:
    """The program of q, qd, qdd in y, yd, ydd and t."""
    moment = Variable("t", ())
    inputs = [Variable(name, (n,)) for name in ("y", "yd", "ydd")]
    arena = Arena(RULES)
    y, (t,) = ([arena.input(v.name, k) for k in range(v.size)] for v in (inputs[0], moment))
    timed = list(inspect.signature(gamma).parameters)[1:] == ["t"]
    q = list(gamma(y, t) if timed else gamma(y))
    if len(q) != nq:
        problem = f"gamma must give {nq} numbers, q, not {len(q)}"
        raise InputError("E-MOTION-028", problem, part="ClosureFunction")
    position = Program.from_outputs("gamma", [inputs[0], moment], [(Variable("q", (nq,)), q)])
    velocity = _renamed(forward(position, ["y", "t"]))
    acceleration = forward(velocity, ["y", "t", "yd"])
    arena = Arena(RULES)
    y, yd, ydd = ([arena.input(v.name, k) for k in range(n)] for v in inputs)
    given: dict[str, list[Number]] = {"y": y, "t": [arena.input("t", 0)], "d_t": [1.0], "td": [1.0]}
    given |= {"yd": yd, "d_y": yd, "d_yd": ydd}
    outputs = []
    for name, part in (("q", position), ("qd", velocity), ("qdd", acceleration)):
        values = part.replay(given, arena)
        outputs.append((Variable(name, (nq,)), [values[r] for r in part.results[0]]))
    return Program.from_outputs("gamma", [*inputs, moment], outputs)


def _renamed(velocity: Program) -> Program:
    """The rates of y and t, as inputs of their own."""
    names = {"d_y": "yd", "d_t": "td"}
    inputs = (Variable(names.get(v.name, v.name), v.shape) for v in velocity.inputs)
    return replace(velocity, inputs=tuple(inputs))
