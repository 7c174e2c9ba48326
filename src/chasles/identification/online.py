"""Online estimation: one compiled step per sample, which can be exported to C.

The method "least-squares" is recursive least squares for the base parameters, with forgetting. The
method "manifold" minimizes the same cost by conjugate gradient steps, with the natural gradient on
the manifold of pseudo-inertias (Lee, Kwon and Park 2018), and keeps all parameters physically
consistent. A step changes each pseudo-inertia P to E P E', where E is close to the exponential of
the step and never singular.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from chasles import backends
from chasles.backends.arrays import Kernel
from chasles.errors import InputError, shown
from chasles.exporting import export_program
from chasles.expr import (
    RULES,
    Arena,
    Program,
    Variable,
)
from chasles.functions.doors import check_robot, numbers
from chasles.identification.consistent import prior
from chasles.identification.equations import Equations
from chasles.identification.linear import (
    SLIP,
    LinearModel,
    base,
    checked_terms,
    rest_velocities,
)
from chasles.identification.recursions import UNKNOWN, least_squares, manifold, upper
from chasles.identification.unknowns import TERMS
from chasles.identification.written import written
from chasles.model.given import a_name, a_number
from chasles.model.spaces import size
from chasles.robot import Robot

METHODS = {"least-squares": least_squares, "manifold": manifold}
"""Step functions by method name."""

SMALL = 1e-2
"""Minimum initial value (SI units) of joint terms that must be positive, such as damping."""


@dataclass(frozen=True)
class OnlineEstimator:
    """A compiled step of online estimation: `state = estimator(state, q, qd, qdd, tau)`.

    Attributes
    ----------
    method : {"least-squares", "manifold"}
        Estimation method, as in `chasles.online_estimator`.
    equations : Equations
        Linear model and base parameters.
    noise : ndarray, (nv,)
        Standard deviations of torques (N m or N).
    forgetting : float
        Weight of a sample relative to the next one.
    """

    method: str
    equations: Equations
    noise: np.ndarray
    forgetting: float

    def __repr__(self) -> str:
        robot, count = self.equations.model.robot.name, len(self.names)
        how = f"{self.method}, {count} base parameters, forgetting {self.forgetting:g}"
        return f"<OnlineEstimator of {shown(repr(robot))}: {how}>"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters."""
        model = self.equations.model
        return tuple(model.names[k] for k in self.equations.base.columns)

    @cached_property
    def initial(self) -> np.ndarray:
        """Initial state of the estimator, which contains the robot's parameters."""
        model, b = self.equations.model, len(self.equations.base)
        if self.method == "least-squares":
            spread = [UNKNOWN * float(i == j) for i, j in upper(b)]
            return np.concatenate([self.equations.base.combination @ model.nominal, spread])
        count, own = 10 * len(model.bodies), model.nominal
        start = prior(own, len(model.bodies), float(own[:count:10].max()), size(model.robot.model))
        x = start.nominal.copy()
        least = [SMALL if TERMS[kind].positive else 0.0 for kind, _ in model.unknowns]
        x[count:] = np.maximum(own[count:], least)
        return np.concatenate([x, np.zeros(len(x) + b + b * (b + 1) // 2)])

    def __call__(self, state: Any, q: Any, qd: Any, qdd: Any, tau: Any) -> np.ndarray:
        """Return the state after one sample.

        Parameters
        ----------
        state : array_like, (k,)
            The state before the sample; for the first sample, `initial`.
        q : array_like, (nq,)
            Joint positions (rad or m).
        qd, qdd, tau : array_like, (nv,)
            Joint velocities, accelerations and measured torques.

        Returns
        -------
        ndarray, (k,)
            The state after the sample.

        Examples
        --------
        >>> import chasles, numpy as np
        >>> robot, rng = chasles.robots.planar(1), np.random.default_rng(0)
        >>> estimator = chasles.online_estimator(robot, include=["inertia"])
        >>> state = estimator.initial
        >>> for q, qd, qdd in rng.normal(size=(50, 3, 1)):
        ...     state = estimator(state, q, qd, qdd, 2.0 * robot.inverse_dynamics(q, qd, qdd))
        >>> before, after = estimator.base(estimator.initial), estimator.base(state)
        >>> bool(np.allclose(after, 2.0 * before, atol=1e-3))
        True
        """
        robot = self.equations.model.robot
        widths = (len(self.initial), robot.nq, robot.nv, robot.nv, robot.nv)
        given = [
            np.ascontiguousarray(numbers("online estimator", x, width), float).reshape(1, width)
            for x, width in zip((state, q, qd, qdd, tau), widths, strict=True)
        ]
        out = np.empty((1, len(self.initial)))
        self._kernel(given, [out], 1)
        return out[0]

    def base(self, state: Any) -> np.ndarray:
        """Return the base parameters stored in a state, in the order of `names`.

        Parameters
        ----------
        state : array_like, shape (k,)
            State of the estimator.

        Returns
        -------
        ndarray, shape (b,)
            Base parameters (SI units).

        Examples
        --------
        >>> import chasles
        >>> estimator = chasles.online_estimator(chasles.robots.planar(1), include=["inertia"])
        >>> len(estimator.base(estimator.initial)) == len(estimator.names)
        True
        """
        b, x = len(self.equations.base), np.asarray(state, float)
        if self.method == "least-squares":
            return x[:b].copy()
        return np.asarray(self.equations.base.combination @ x[: len(self.equations.model.names)])

    def robot(self, state: Any) -> Robot:
        """Return the robot with the parameters stored in a state.

        Parameters
        ----------
        state : array_like, shape (k,)
            State of an estimator with method "manifold".

        Returns
        -------
        Robot
            Robot with physically consistent inertias.

        Raises
        ------
        InputError
            If the method is "least-squares", whose parameters may be physically impossible.

        Examples
        --------
        >>> import chasles
        >>> arm = chasles.robots.planar(1)
        >>> estimator = chasles.online_estimator(arm, include=["inertia"], method="manifold")
        >>> estimator.robot(estimator.initial).joints == arm.joints
        True
        """
        if self.method != "manifold":
            problem = "parameters from method='least-squares' may be physically impossible"
            remedy = "create the estimator with method='manifold', or use chasles.identify"
            raise InputError("E-IDENT-035", problem, remedy, part="robot")
        model = self.equations.model
        return written(model, np.asarray(state, float)[: len(model.names)])[0]

    def export(
        self,
        directory: str | os.PathLike[str],
        *,
        dtype: str = "double",
        prefix: str | None = None,
        overwrite: bool = False,
    ) -> tuple[Path, ...]:
        """Export the estimation step as C99 code, in the same form as `chasles.export`.

        The generated header declares the signature of the step.

        Parameters
        ----------
        directory : path
            Folder to write to.
        dtype : {"double", "float"}, optional
            Floating-point type.
        prefix : str, optional
            Prefix of all names. Default: the robot's name.
        overwrite : bool, optional
            Replace existing files.

        Returns
        -------
        tuple of Path
            Paths of the files.

        Raises
        ------
        InputError
            If `dtype` is unknown, or if `prefix` is not a valid C identifier.
        ExistingFileError
            If a file exists and `overwrite` is False.
        NotAFolderError
            If `directory` is a file.
        FileError
            If a file cannot be written.

        Examples
        --------
        >>> import chasles, tempfile
        >>> estimator = chasles.online_estimator(chasles.robots.planar(1), include=["inertia"])
        >>> files = estimator.export(tempfile.mkdtemp())
        >>> sorted(file.name for file in files)
        ['CMakeLists.txt', 'planar.c', 'planar.h', 'planar_test.c']
        """
        robot, rng = self.equations.model.robot, np.random.default_rng(0)
        state, arrays = self.initial, []
        for _ in range(3):
            q, rates = robot.random(rng), rng.normal(size=(2, robot.nv))
            tau = robot.inverse_dynamics(q, *rates)
            arrays.append((state, q, *rates, tau))
            state = self(*arrays[-1])
        sample = tuple(np.array(x, np.float32).astype(float) for x in zip(*arrays, strict=True))
        return export_program(
            robot, "One step of online estimation.", self.program, sample,
            directory, dtype=dtype, prefix=prefix, overwrite=overwrite,
        )  # fmt: skip

    @cached_property
    def program(self) -> Program:
        """Program of one step, which maps state, q, qd, qdd and tau to the next state."""
        arena, inputs = Arena(RULES), [Variable("state", (len(self.initial),))]
        inputs += self.equations.inputs()
        given = {v.name: [arena.input(v.name, k) for k in range(v.size)] for v in inputs}
        rows = [
            (kept, [entry * (1.0 / sigma) for entry in row])
            for (kept, row), sigma in zip(
                self.equations.rows(given, arena), self.noise, strict=True
            )
        ]
        made = METHODS[self.method](self.equations, self.forgetting, given["state"], rows)
        return Program.from_outputs("estimate", inputs, [(Variable("after", (len(made),)), made)])

    @cached_property
    def _kernel(self) -> Kernel:
        recipe = ("online", self.program.hash)
        known = backends.known(recipe, lambda: self.program, backends.USUAL, "float64")
        return known or backends.compile(self.program, backends.USUAL, "float64", recipe)


def online_estimator(
    robot: Robot,
    *,
    method: Literal["least-squares", "manifold"] = "least-squares",
    include: Sequence[str] = ("inertia", "damping", "friction"),
    noise: Any = 1.0,
    forgetting: float = 0.999,
    stribeck_velocity: float = SLIP,
    rest_velocity: float | Mapping[str, float] = 0.0,
) -> OnlineEstimator:
    """Return a compiled step that updates parameters with each new sample.

    Parameters
    ----------
    robot : Robot
        A robot without closed loops, whose parameters are the initial estimate.
    method : {"least-squares", "manifold"}
        Recursive least squares for the base parameters, or conjugate gradient steps for all
        parameters, which stay physically consistent.
    include : sequence of str
        Terms to estimate, as in `chasles.identify`.
    noise : float or array_like, (nv,)
        Standard deviation of the torques (N m or N).
    forgetting : float
        Weight of a sample relative to the next one, above 0 and at most 1.
    stribeck_velocity : float
        Stribeck velocity (rad/s or m/s).
    rest_velocity : float or dict
        Velocity (rad/s or m/s) up to which a joint with dry friction is considered at rest, for
        all joints or by name. The torque of a joint at rest is not used.

    Returns
    -------
    OnlineEstimator
        Callable `estimator(state, q, qd, qdd, tau)` that returns the next state. The first state is
        `estimator.initial`.

    Raises
    ------
    InputError
        If an option is out of range, if a term in `include` or a joint is unknown, or if the robot
        has closed loops.
    ArgumentError
        If `robot` is not a Robot, or if an option has the wrong type.

    Examples
    --------
    >>> estimator = chasles.online_estimator(chasles.robots.planar(2), include=["inertia"])
    >>> estimator.names
    ('link1.hx', 'link1.hz', 'link1.Iyy', 'link2.hx', 'link2.hz', 'link2.Iyy')
    """
    check_robot("online_estimator", robot)
    if len(robot.independent) < robot.nv:
        problem = "online estimation does not support robots with closed loops"
        raise InputError(
            "E-IDENT-036", problem, "use chasles.identify on a log", part="online_estimator"
        )
    if a_name("method", method, "online_estimator") not in METHODS:
        problem = f"`method` must be {' or '.join(map(repr, METHODS))}, not {method!r:.60}"
        raise InputError("E-IDENT-037", problem, part="online_estimator")
    kept = a_number("forgetting", forgetting, "online_estimator")
    sigma = numbers("online_estimator: noise", np.broadcast_to(noise, (robot.nv,)), robot.nv)
    if not 0.0 < kept <= 1.0 or np.any(~(sigma > 0.0)):
        problem = "`forgetting` must be above 0 and at most 1, and `noise` must be positive"
        raise InputError("E-IDENT-038", problem, part="online_estimator")
    slowest = rest_velocities(robot, rest_velocity, "online_estimator")
    terms = checked_terms(robot, include)
    model = LinearModel(robot, terms, None, stribeck_velocity, slowest=slowest)
    none = np.zeros((0, robot.nq)), np.zeros((0, robot.nv)), np.zeros((0, robot.nv))
    chosen = base(model, np.random.default_rng(0), none)
    return OnlineEstimator(method, Equations(model, chosen), sigma.astype(float), kept)
