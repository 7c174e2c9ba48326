"""Forces of springs, dampers and fluid in an implicit step, and their derivatives.

The stiffness and damping matrices contain only terms that never add energy. For a spring with
stiffness k whose length has the gradient J, the stiffness matrix contains k J'J, but not the term
with the derivative of J. Omitted terms act explicitly, which preserves the order of the integrator.
"""

from collections.abc import Sequence

import numpy as np

from chasles.expr import Arena, Number
from chasles.functions.programs import Derivative
from chasles.model import Model
from chasles.motion.geometry.closed_forms import less
from chasles.motion.steps.algebra import symmetric, zeros
from chasles.motion.steps.bodies import Own, along_velocities, computed
from chasles.motion.steps.lines import Drawn, speed_along, stiffen


class Passive:
    """Torques of springs, tendons, dampers and fluid in one state, and their derivatives.

    Attributes
    ----------
    stiffness, damping : array, shape (nv, nv)
        Negative derivatives of joint torques with respect to position and velocity, positive
        semidefinite.
    losses : array, shape (nv,)
        Dissipative joint torques, due to dampers and fluid.
    """

    def __init__(
        self,
        model: Model,
        arena: Arena,
        q: np.ndarray,
        v: np.ndarray,
        every: Sequence[Drawn],
        own: Own,
    ) -> None:
        self.stiffness = _diagonal(along_velocities(model, "stiffness", own))
        damping = along_velocities(model, "damping", own)
        self.damping, self.losses = _diagonal(damping), -damping * v
        for line, row, length, _ in every:
            if line.tendon is None:
                continue
            data = line.tendon.data
            if data.stiffness:
                pulled: Number = 1.0
                if data.rest[0] != data.rest[1]:
                    pulled = less(length, data.rest[0]) + less(data.rest[1], length)
                stiffen(self.stiffness, row, data.stiffness * pulled)
            if data.damping:
                stiffen(self.damping, row, data.damping)
                speed = speed_along(row, v)
                for k, a in row:
                    self.losses[k] = self.losses[k] - data.damping * speed * a
        if model.source.fluid is not None:
            given = {"q": q, "qd": v}
            self.losses = self.losses + computed(model, "fluid_forces", arena, given, own)
            slope = Derivative("jacobian", ("qd",))
            found = computed(model, "fluid_forces", arena, given, own, derivative=slope)
            self.damping = self.damping - symmetric(found)


def _diagonal(entries: np.ndarray) -> np.ndarray:
    found = zeros(len(entries), len(entries))
    np.fill_diagonal(found, entries)
    return found
