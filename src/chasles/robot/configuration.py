"""The configuration space of a robot: positions by name, at random, and with loops closed."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from chasles.errors import ArgumentError
from chasles.functions.doors import from_names, numbers
from chasles.mechanisms import Mobility, assemble, mobility
from chasles.robot.functions import Computing
from chasles.robot.identity import Array


class Configuring(Computing):
    """Positions, and what loops leave of their freedoms."""

    def neutral(self) -> np.ndarray:
        """The configuration in which every joint's two frames coincide: (nq,)."""
        return self.mechanism.neutral()

    def state(self, values: Mapping[str, Array], *, default: Array = None) -> np.ndarray:
        """q (..., nq) from {joint: position}, shapes broadcast together.

        Joints that are not named are as in `default` (neutral if omitted). The parts of any array
        by joint name: `chasles.conventions.position_by_name` and `velocity_by_name`.
        """
        if not isinstance(values, Mapping):
            problem = f"give {{joint: position}}, not {type(values).__name__}"
            raise ArgumentError("E-ROBOT-010", problem, part="state")
        q = numbers("default", self.neutral() if default is None else default, self.nq)
        return from_names(values, self.position_slice, q)

    def random(
        self, rng: "np.random.Generator | int | None" = None, size: int | tuple[int, ...] = ()
    ) -> np.ndarray:
        """Random configurations (*size, nq): uniform between limits where a joint has them.

        Without limits, angles lie in [-pi, pi], positions in [-1, 1] m; orientations are uniform.
        They leave loops open: `assemble` takes one as a guess, and closes them.
        """
        rng = np.random.default_rng(rng)
        shape = (size,) if isinstance(size, int) else tuple(size)
        q = np.empty((*shape, self.nq))
        for i, where in self.model.position_slices.items():
            body = self.model.bodies[i]
            for k, unit in zip(range(where.start, where.stop), body.joint.units, strict=True):
                span = {"rad": np.pi, "m": 1.0, "1": 0.0}[unit]
                low, high = body.data.limits.lower, body.data.limits.upper
                bounded = body.joint.nq == 1 and np.isfinite(low) and np.isfinite(high)
                low, high = (low, high) if bounded and low <= high else (-span, span)
                q[..., k] = rng.uniform(low, high, shape) if unit != "1" else rng.normal(size=shape)
            if "1" in body.joint.units:
                turn = q[..., where.start : where.start + 4]
                turn /= np.linalg.norm(turn, axis=-1, keepdims=True)
        return q

    def mobility(self, q: Array = None, *, tolerance: float = 1e-9) -> Mobility:
        """The freedoms that loops leave at a closed q (nq,), counted by the rank of `loop_matrix`.

        The result is their number (`robot.mobility() == 1`), which prints as a report: rank,
        redundant equations of each loop, the tolerance, freedoms that cannot move while others do,
        and, where a loop has redundant equations, a joint type in its place that has fewer and
        leaves the motion as it is. Without q, at a closed position in which nothing is special.
        tolerance: the residual above which q counts as open (rad, and parts of the loop's size).
        """
        mechanism = self.mechanism
        return mobility(mechanism.loops if q is None else mechanism.closing, q, tolerance)

    def assemble(self, y: Array, guess: Array = None) -> np.ndarray:
        """The q (..., nq) that closes the loops, with the `independent` freedoms at y (..., n).

        guess (..., nq): where the search for the dependent coordinates starts, which decides the
        branch; without it, any branch. y has the coordinates themselves, or, for freedoms of
        planar, spherical and free joints, how far to move from the guess along them. Newton's
        method, damped, to 1e-13 of the loop's size. Raises `chasles.ImpossiblePosition` where the
        loops stay open, `chasles.SingularPosition` where y does not determine q.
        """
        return assemble(self.mechanism.closing, y, guess)

    def complete(self, q: Array, yd: Array, ydd: Array = None, *, tolerance: float = 1e-9) -> Any:
        """All rates qd (..., nv) from those of the `independent` freedoms, at a closed q.

        With ydd, the tuple (qd, qdd) of rates and accelerations. tolerance as in `mobility`; raises
        `chasles.OpenLoop` where q is not closed, `chasles.SingularPosition` where yd does not
        determine qd.
        """
        return self.mechanism.closing.complete(q, yd, ydd, tolerance)
