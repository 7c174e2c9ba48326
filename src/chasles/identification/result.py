"""Result of an identification."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from chasles.identification.linear import LinearModel, samples
from chasles.model.given import a_flag
from chasles.robot import Robot

SURE = 0.1
"""Relative standard deviation below which a base parameter counts as accurately known."""

SIGNIFICANT = 3.0
"""Threshold for essential base parameters: ratio of value to standard deviation."""

ROUNDING = 1e-9
"""Fraction of the standard deviation below which an initial value is displayed as zero."""

MOST_SHOWN = 60
"""Maximum number of base parameters in a report."""


@dataclass(frozen=True)
class Identified:
    """Parameters of a robot, identified from measurements.

    Attributes
    ----------
    robot : Robot
        A new robot with the physically consistent parameters.
    base : ndarray, (b,)
        Base parameters from weighted least squares.
    names : tuple of str
        The leading parameter of each base parameter, to which other parameters with the same effect
        are added (see `combination`).
    covariance : ndarray, (b, b)
        Covariance of `base`.
    noise : ndarray, (rows,)
        Standard deviation of each torque's residual (N m or N).
    condition : float
        Condition number of the regression with columns scaled to unit length. Above 100, the motion
        excites some parameters poorly.
    parameters : dict
        Consistent values by name, for `robot.with_parameters`.
    offset : dict
        Torque offset of each joint, if offsets were identified (N m or N).
    joint_terms : dict
        Consistent values of all joint terms by name, such as "elbow.stribeck" (N m or N).
    gain : dict
        Motor constant of each torque, if `gain` was given (N m/A; 1 for a measured torque).
    delay : dict
        Delay of each torque, and of each logged wrench, if `delay` was given (s).
    vector : ndarray, (k,)
        Physically consistent values of all unknowns of the linear model.
    combination : ndarray, (b, k)
        Matrix that maps parameters to base parameters: `combination @ vector`.
    samples : int
        Number of states.
    notes : tuple of str
        Notes about the data and the prior.
    """

    robot: Robot
    base: np.ndarray
    names: tuple[str, ...]
    covariance: np.ndarray
    noise: np.ndarray
    condition: float
    parameters: dict[str, Any]
    offset: dict[str, float]
    vector: np.ndarray
    combination: np.ndarray
    columns: np.ndarray
    samples: int
    notes: tuple[str, ...]
    model: LinearModel = field(repr=False)
    joint_terms: dict[str, float] = field(default_factory=dict)
    gain: dict[str, float] = field(default_factory=dict)
    delay: dict[str, float] = field(default_factory=dict)

    @property
    def deviations(self) -> np.ndarray:
        """Standard deviations (b,) of `base`."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def essential(self) -> dict[str, float]:
        """Base parameters that differ significantly from zero, by name.

        The parameter with the smallest ratio of value to standard deviation is removed, and the
        others are estimated again without it, until all ratios exceed three. The method follows
        Pham and Gautier (1991), with the measurement noise as the criterion.
        """
        kept, x, C = np.arange(len(self.base)), self.base, self.covariance
        while len(kept):
            ratio = np.abs(x) / np.maximum(np.sqrt(np.diagonal(C)), 1e-300)
            k = int(np.argmin(ratio))
            if ratio[k] > SIGNIFICANT:
                break
            gain = C[:, k] / max(C[k, k], 1e-300)
            rest = np.arange(len(kept)) != k
            x, C = (x - gain * x[k])[rest], (C - np.outer(gain, C[k]))[np.ix_(rest, rest)]
            kept = kept[rest]
        return {self.names[k]: float(value) for k, value in zip(kept, x, strict=True)}

    @property
    def before(self) -> np.ndarray:
        """Base parameters (b,) of the given robot, with zeros in place of rounding errors."""
        before: np.ndarray = self.combination @ self.model.nominal
        return np.where(np.abs(before) < ROUNDING * self.deviations, 0.0, before)

    def predict(
        self, q: Any, qd: Any, qdd: Any, *, consistent: bool = True, f_ext: Any = None
    ) -> np.ndarray:
        """Return predicted torques.

        Parameters
        ----------
        q : array_like, shape (n, nq)
            Joint positions (rad or m).
        qd, qdd : array_like, shape (n, nv)
            Joint velocities and accelerations.
        consistent : bool, optional
            Use the consistent parameters (the default), or the base parameters from least squares.
        f_ext : mapping, optional
            External wrenches, as in `Robot.inverse_dynamics`.

        Returns
        -------
        tau : ndarray, shape (n, rows)
            Joint torques (N m or N) or, with closed loops, torques of the independent coordinates.

        Raises
        ------
        InputError
            If an array has the wrong shape or is not finite, or if the numbers of samples differ.
        ArgumentError
            If `consistent` cannot be converted to a bool.

        Examples
        --------
        >>> import numpy as np
        >>> import chasles
        >>> robot = chasles.robots.planar(1)
        >>> q, qd, qdd = np.random.default_rng(0).normal(size=(3, 50, 1))
        >>> tau = robot.inverse_dynamics(q, qd, qdd)
        >>> found = chasles.identify(robot, q=q, qd=qd, qdd=qdd, tau=tau, include=["inertia"])
        >>> bool(np.allclose(found.predict(q, qd, qdd), tau, atol=1e-6))
        True
        """
        model = self.model
        q, qd, qdd = samples(model.robot, "predict", q, qd, qdd)
        A = model.rows(q, model.matrix(q, qd, qdd))
        known = model.rows(q, model.known(q, qd, qdd, f_ext))
        if a_flag("consistent", consistent, "predict"):
            return np.asarray(A @ self.vector + known)
        return np.asarray(A[..., self.columns] @ self.base + known)

    def validate(
        self, q: Any, qd: Any, qdd: Any, tau: Any, *, consistent: bool = True, f_ext: Any = None
    ) -> np.ndarray:
        """Return the rms error of predicted torques on new measurements.

        States in which a joint with identified dry friction is at rest are left out.

        Parameters
        ----------
        q : array_like, shape (n, nq)
            Joint positions (rad or m).
        qd, qdd : array_like, shape (n, nv)
            Joint velocities and accelerations.
        tau : array_like, shape (n, nv)
            Measured joint torques (N m or N).
        consistent : bool, optional
            Use the consistent parameters (the default), or the base parameters from least squares.
        f_ext : mapping, optional
            External wrenches, as in `Robot.inverse_dynamics`.

        Returns
        -------
        error : ndarray, shape (rows,)
            Root mean square error of each torque (N m or N).

        Raises
        ------
        InputError
            If an array has the wrong shape or is not finite, or if the numbers of samples differ.
        ArgumentError
            If `consistent` cannot be converted to a bool.

        Examples
        --------
        >>> import numpy as np
        >>> import chasles
        >>> robot = chasles.robots.planar(1)
        >>> q, qd, qdd = np.random.default_rng(0).normal(size=(3, 50, 1))
        >>> tau = robot.inverse_dynamics(q, qd, qdd)
        >>> found = chasles.identify(robot, q=q, qd=qd, qdd=qdd, tau=tau, include=["inertia"])
        >>> bool((found.validate(q, qd, qdd, tau) < 1e-6).all())
        True
        """
        q, qd, qdd, tau = samples(self.model.robot, "validate", q, qd, qdd, tau)
        found = self.predict(q, qd, qdd, consistent=consistent, f_ext=f_ext)
        moving = self.model.moving(q, qd)
        errors = np.where(moving, found - self.model.rows(q, tau), 0.0)
        return np.asarray(np.sqrt(np.sum(errors**2, axis=0) / np.maximum(moving.sum(axis=0), 1)))

    def report(self) -> str:
        """Return a table of base parameters with their standard deviations, and notes.

        Returns
        -------
        text : str
            The table, with the noise of each torque and the notes.

        Examples
        --------
        >>> import numpy as np
        >>> import chasles
        >>> robot = chasles.robots.planar(1)
        >>> q, qd, qdd = np.random.default_rng(0).normal(size=(3, 50, 1))
        >>> tau = robot.inverse_dynamics(q, qd, qdd)
        >>> found = chasles.identify(robot, q=q, qd=qd, qdd=qdd, tau=tau, include=["inertia"])
        >>> found.report().splitlines()[0]
        'planar: 3 base parameters from 50 states'
        """
        sure = self.deviations < SURE * np.abs(self.base)
        lines = [
            f"{self.model.robot.name}: {len(self.base)} base parameters from {self.samples} states",
            f"condition number {self.condition:.3g}; {len(self.essential)} parameters essential, "
            f"{int(sure.sum())} known to {SURE:.0%} or better",
            "",
            f"{'parameter':32}{'value':>12}{'deviation':>12}{'before':>12}",
        ]
        rows = zip(self.names, self.base, self.deviations, self.before, strict=True)
        for name, value, deviation, old in list(rows)[:MOST_SHOWN]:
            lines.append(f"{name:32}{value:12.4g}{deviation:12.2g}{old:12.4g}")
        if len(self.names) > MOST_SHOWN:
            lines.append(f"... {len(self.names) - MOST_SHOWN} more")
        lines += ["", f"{'torque':32}{'noise':>12}"]
        for name, noise in zip(self.model.robot.independent, self.noise, strict=True):
            lines.append(f"{name:32}{noise:12.3g}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)]) + "\n"

    def __repr__(self) -> str:
        name, count = self.model.robot.name, len(self.base)
        return f"<Identified {name!r}: {count} base parameters from {self.samples} states>"
