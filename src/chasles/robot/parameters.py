"""Inertial parameters of a robot, and the base parameters that torques depend on."""

from typing import Any

import numpy as np

from chasles.backends.arrays import check_tolerance
from chasles.errors import InputError
from chasles.functions import numeric
from chasles.model.given import a_generator
from chasles.robot.derived import Deriving


class Parametric(Deriving):
    """Methods for inertial parameters of the moving links."""

    def inertial_parameters(self) -> np.ndarray:
        """Return the inertial parameters of the moving links, ten numbers for each.

        Returns
        -------
        ndarray, shape (10 moving joints,)
            For each of `moving_joints`, parameters of its child link and everything rigidly
            attached to it, in the frame of that link: mass (kg), first moment (3, kg m), inertia
            about the origin of the frame (xx, yy, zz, xy, xz, yz, kg m2).

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.planar(2).inertial_parameters().shape
        (20,)
        """
        numbers: list[Any] = []
        for i in self.model.in_file_order:
            body = self.model.bodies[i]
            I = self.model.frames[body.name].placement @ body.inertia
            numbers += [I.m, *I.h, *I.I]
        return np.array(numbers, dtype=float)

    def base_parameters(
        self, *, tolerance: float = 1e-8, rng: "np.random.Generator | int | None" = 0
    ) -> numeric.BaseParameters:
        """Return a minimal set of combinations of `inertial_parameters` that determine torques.

        Parameters
        ----------
        tolerance : float, optional
            A column is kept if more than this fraction of it is linearly independent of others.
        rng : numpy.random.Generator or int, optional
            Generator or seed of the random states.

        Returns
        -------
        BaseParameters
            The base parameters, and the margins of the numerical rank decision.

        Notes
        -----
        The choice uses QR with column pivoting (Gautier 1991) on regressors of random states, which
        ignore joint limits. The same columns are chosen for robots that differ only in size. For a
        robot with loops, the result contains the base parameters of its tree; closed motions may
        depend on fewer.

        Examples
        --------
        >>> import chasles
        >>> base = chasles.robots.planar(2).base_parameters()
        """
        check_tolerance("base_parameters", tolerance)
        if not tolerance < 1.0:
            problem = f"tolerance must be in (0, 1), not {tolerance!r}"
            raise InputError("E-ROBOT-020", problem, part="base_parameters")
        rng = a_generator(rng, "base_parameters")
        count = 20 + 40 * len(self.moving_joints) // max(self.nv, 1)
        steps, qd, qdd = numeric.random_states(self.model, count, rng)
        Y = self.regressor(self.integrate(self.neutral(), steps), qd, qdd)
        return numeric.base_parameters(self.model, Y, tolerance)
