"""Inertial parameters of a robot, and the base parameters that determine joint torques."""

from typing import Any

import numpy as np

from chasles.backends.arrays import check_tolerance
from chasles.errors import InputError
from chasles.functions import numeric
from chasles.model.given import a_generator
from chasles.robot.derived import Deriving


class Parametric(Deriving):
    """Robot methods for the inertial parameters of moving links."""

    def inertial_parameters(self) -> np.ndarray:
        """Return the ten inertial parameters of each moving link.

        Returns
        -------
        ndarray, shape (10 * len(moving_joints),)
            For each joint in `moving_joints`, the parameters of its child link and everything
            rigidly attached to it, in the link frame: mass (kg), first moment (3, kg m), inertia
            about the frame origin (xx, yy, zz, xy, xz, yz, kg m2).

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
        """Return the base parameters, a minimal set of parameters that determines the torques.

        Parameters
        ----------
        tolerance : float, optional
            A regressor column is dropped if its component orthogonal to the kept columns is at most
            this fraction of the column's norm.
        rng : numpy.random.Generator or int, optional
            Generator or seed for the random states.

        Returns
        -------
        BaseParameters
            Base parameters as combinations of `inertial_parameters`, and the margins of the
            numerical rank decision.

        Raises
        ------
        InputError
            If `tolerance` is not in (0, 1), or if `rng` is not a generator or a seed.

        Notes
        -----
        Columns are selected by QR with column pivoting (Gautier 1991) from regressors at random
        states, without regard to joint limits. The same columns are selected for robots that differ
        only in size. For a robot with loops, the result contains the base parameters of the tree.
        As long as the loops are closed, the torques may depend on fewer parameters.

        Examples
        --------
        >>> import chasles
        >>> base = chasles.robots.planar(2).base_parameters()
        >>> len(base.columns)
        6
        """
        check_tolerance("base_parameters", tolerance)
        if not tolerance < 1.0:
            problem = f"`tolerance` must be in (0, 1), not {tolerance!r}"
            raise InputError("E-ROBOT-020", problem, part="base_parameters")
        rng = a_generator(rng, "base_parameters")
        count = 20 + 40 * len(self.moving_joints) // max(self.nv, 1)
        steps, qd, qdd = numeric.random_states(self.model, count, rng)
        Y = self.regressor(self.integrate(self.neutral(), steps), qd, qdd)
        return numeric.base_parameters(self.model, Y, tolerance)
