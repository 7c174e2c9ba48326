"""Random states of a robot, and their conversion to the coordinates of other libraries."""

from dataclasses import dataclass

import numpy as np

import chasles

Array = np.ndarray

INPUTS: dict[str, tuple[str, ...]] = {
    "inverse_dynamics": ("q", "qd", "qdd"),
    "mass_matrix": ("q",),
    "forward_dynamics": ("q", "qd", "tau"),
    "forward_kinematics": ("q",),
    "jacobian": ("q",),
    "inverse_dynamics_derivatives": ("q", "qd", "qdd"),
    "forward_dynamics_derivatives": ("q", "qd", "tau"),
    "linearize": ("q", "qd", "tau"),
}
"""Functions that can be compared, and their inputs (fields of `States`).

Derivatives are taken with respect to each input, in this order: (states, 3, nv, nv). The matrices A
and B of `linearize` are compared side by side: (states, 2 nv, 3 nv).
"""

METHODS = ("homogeneous", "homogeneous-link", "lagrange")
"""Additional methods of inverse dynamics, called "inverse_dynamics@..." in the benchmarks."""

INPUTS |= {f"inverse_dynamics@{method}": INPUTS["inverse_dynamics"] for method in METHODS}


def method_of(function: str) -> tuple[str, str]:
    """Split a function name of the benchmarks into the function and its method."""
    name, _, method = function.partition("@")
    return name, method or "fastest"


DERIVED = {f"{name}_derivatives": name for name in ("inverse_dynamics", "forward_dynamics")}
"""Function that is differentiated, for each name of derivatives."""


@dataclass(frozen=True)
class States:
    """Random states of a robot in chasles' conventions, one state per row."""

    q: Array
    qd: Array
    qdd: Array
    tau: Array

    @staticmethod
    def draw(robot: chasles.Robot, count: int, seed: int = 0) -> "States":
        """Draw positions within the limits, and all other values from a normal distribution."""
        rng = np.random.default_rng(seed)
        q = robot.random(rng, size=count)
        return States(q, *rng.normal(size=(3, count, robot.nv)))

    def inputs(self, function: str) -> list[Array]:
        """Return the input arrays of a function."""
        return [getattr(self, name) for name in INPUTS[function]]


@dataclass(frozen=True)
class Coordinates:
    """Conversion of states to the coordinates of another library, and of its results back.

    `q` contains the positions in the other library. Its velocities are T v, its forces T f, and its
    accelerations T a + b, where T is orthogonal. T is either one matrix or one matrix per state.
    """

    q: Array
    T: Array
    b: Array

    def states(self, states: States) -> States:
        """Return the states in the coordinates of the other library."""
        qd, qdd, tau = (self._turn(x) for x in (states.qd, states.qdd, states.tau))
        return States(self.q, qd, qdd + self.b, tau)

    def result(self, function: str, theirs: Array) -> Array:
        """Convert a result of the other library to chasles' coordinates."""
        if function == "forward_kinematics":
            mine = theirs
        elif function == "jacobian":
            mine = theirs @ self.T
        elif function == "mass_matrix" or function in DERIVED:
            assert self.T.ndim == 2 or function == "mass_matrix", "T depends on q: unsupported"
            mine = self._back @ theirs @ self.T
        elif function == "linearize":
            assert self.T.ndim == 2, "T depends on q: unsupported"
            mine = np.kron(np.eye(2), self._back) @ theirs @ np.kron(np.eye(3), self.T)
        else:
            shift = self.b if function == "forward_dynamics" else 0.0
            mine = np.einsum("...ij,...j->...i", self._back, theirs - shift)
        return np.asarray(mine)

    @property
    def _back(self) -> Array:
        return np.swapaxes(self.T, -1, -2)

    def _turn(self, v: Array) -> Array:
        return np.ascontiguousarray(np.einsum("...ij,...j->...i", self.T, v))
