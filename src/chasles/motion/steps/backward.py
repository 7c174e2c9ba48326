"""Gradients of a time step with contact, by the adjoint method.

The velocities v at the end of a step solve the momentum balance g(v, x) = 0, where x contains the
state, torques and parameters at the beginning of the step. The results of the step are y(v, x). If
c is the gradient of a cost with respect to y, its gradient with respect to x is

    (dy/dx)' c - (dg/dx)' z,    where    (dg/dv)' z = (dy/dv)' c

The adjoint requires one solve with the transposed Jacobian at the solution; iterations are not
differentiated. It is assumed that small changes of x do not alter which contacts act, stick or
slide. Where this assumption does not hold, the result is a one-sided derivative.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles.expr import Program, Variable, reverse
from chasles.functions.derivatives import pulled_back
from chasles.motion.geometry.closed_forms import less
from chasles.motion.geometry.kinematics import result, symbols
from chasles.motion.steps.bodies import moved
from chasles.motion.steps.braking import slowed
from chasles.motion.steps.closing import closed
from chasles.motion.steps.convex import Newton
from chasles.motion.steps.stepping import HOLD, TOLERANCE, Steps
from chasles.motion.steps.traced import by_entries

MOVING = ("q", "qd", "act")
"""Names of the states with respect to which gradients are computed."""


class Backward:
    """Programs for reverse-mode differentiation of a time step.

    The programs solve the step, and then update the gradients of a scalar with respect to:

    - the inputs in `along`, which vary from step to step (gradients for this step alone)
    - the states
    - all other inputs (sums over the steps)

    The inputs of the programs are the inputs of the step, the gradients after the step, and terms
    (weights) that are added to the gradients with respect to the states.
    """

    def __init__(self, steps: Steps, along: Sequence[str]) -> None:
        self.steps, self.along, model = steps, tuple(along), steps.model
        self.states = [name for name in MOVING if name in steps.states]
        given = [v.name for v in steps.inputs if v.name not in (*steps.states, "t")]
        self.sums = [name for name in given if name not in along]
        sizes = {v.name: v.size for v in steps.inputs} | {"q": model.nv}
        self.names = [*along, *self.states, *self.sums]
        self.bars = [Variable(f"bar_{name}", (sizes[name],)) for name in self.names]
        self.weights = [Variable(f"weight_{name}", (sizes[name],)) for name in self.states]

    def begin(self, tolerance: float = TOLERANCE) -> Program:
        """Return the program `Steps.begin`, extended by the inputs that the adjoint step needs."""
        return self.steps.begin(tolerance, self.bars, self.weights)

    @property
    def end(self) -> Program:
        """Program for gradients with respect to the inputs of a step, given its velocities."""
        steps, arena, model = self.steps, self.steps._arena, self.steps.model
        point, memory, _ = steps._between
        own = {x.name: symbols(arena, x.name, x.shape) for x in (point, memory)}
        own |= {x.name: symbols(arena, x.name, x.shape) for x in (*self.bars, *self.weights)}
        values: dict[str, Any] = steps._given | own
        v = values["point"]
        _, held, _, rubs, brake = steps._remembered(values["memory"])
        fixed = less(HOLD, values["memory"][1])
        newton = Newton(steps._problem, list(held), fixed, list(rubs))
        taken = [*steps.inputs, point, memory]
        after = self._after(v, brake)
        known = [(Variable(name, (len(x),)), x) for name, x in after.items()]
        left = newton.balance(v)
        balance = (Variable("balance", left.shape), list(left))
        for name in self.states:
            values[f"bar_{name}"] = own[f"bar_{name}"] + own[f"weight_{name}"]
        values["bar_q"] = by_entries(model, arena, after["q"], values["bar_q"])
        motion = reverse(Program.from_outputs("motion", taken, known), ["point"])
        pulled = result(motion, arena, values)
        values["bar_balance"] = -newton.transposed(v, pulled)
        whole = Program.from_outputs("whole", taken, [*known, balance])
        back = pulled_back(model, whole, self.names, frozenset({"q"}))
        results = back.applied(values, arena)
        for k, name in enumerate(self.names):
            if name in self.sums:
                results[k] = list(own[f"bar_{name}"] + results[k])
        inputs = [*self.bars, *steps.inputs, *self.weights, *steps._between]
        found = list(zip(self.bars, results, strict=True))
        return steps._tiled("backward", inputs, found)

    def _after(self, v: Any, brake: np.ndarray) -> dict[str, list[Any]]:
        """Return the states after a step, by name.

        `v` are the velocities at the end of the step, and `brake` is the velocity correction for
        fast rotations (`braking.brake`).
        """
        steps, given, arena = self.steps, self.steps._given, self.steps._arena
        way = steps._way(given["qd"], v, steps.early, steps._rate)
        if steps._reduced is None:
            q, qd = moved(steps.model, arena, given["q"], way, v)
        else:
            G = steps._reduced.G
            q, qd, _ = closed(steps.model, arena, given["q"], G @ way, G @ v, steps.own)
        qd = qd if steps._smooth is None else slowed(steps.model, qd, brake)
        found = {"q": list(q), "qd": list(qd)}
        return found | ({"act": steps._activated(arena, given)} if "act" in self.states else {})
