"""The states that are computed, and the same states in another library's coordinates."""

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
"""The functions that can be compared, and the fields of `States` that each takes. Derivatives are
by each of these, in this order: results (states, 3, nv, nv). A and B are compared side by side:
(states, 2 nv, 3 nv)."""

METHODS = ("homogeneous", "homogeneous-link", "lagrange")
"""Methods of inverse dynamics that are compared beside the fastest, as "inverse_dynamics@..."."""

INPUTS |= {f"inverse_dynamics@{method}": INPUTS["inverse_dynamics"] for method in METHODS}


def method_of(function: str) -> tuple[str, str]:
    """The function and the method that a benchmark's function stands for."""
    name, _, method = function.partition("@")
    return name, method or "fastest"


DERIVED = {f"{name}_derivatives": name for name in ("inverse_dynamics", "forward_dynamics")}
"""Whose derivatives they are."""


@dataclass(frozen=True)
class States:
    """Random states of a robot, one a row, in chasles' conventions."""

    q: Array
    qd: Array
    qdd: Array
    tau: Array

    @staticmethod
    def draw(robot: chasles.Robot, count: int, seed: int = 0) -> "States":
        """Positions within limits; rates, accelerations and forces of unit variance."""
        rng = np.random.default_rng(seed)
        q = robot.random(rng, size=count)
        return States(q, *rng.normal(size=(3, count, robot.nv)))

    def inputs(self, function: str) -> list[Array]:
        """The arrays that a function takes."""
        return [getattr(self, name) for name in INPUTS[function]]


@dataclass(frozen=True)
class Coordinates:
    """The same states in another library.

    q: its positions. Its velocities and forces are T v and T f with an orthogonal T, one for all
    states or one each; its accelerations are T a + b. Results come back by the inverse.
    """

    q: Array
    T: Array
    b: Array

    def states(self, states: States) -> States:
        """All of the states in the other library's coordinates."""
        qd, qdd, tau = (self._turn(x) for x in (states.qd, states.qdd, states.tau))
        return States(self.q, qd, qdd + self.b, tau)

    def result(self, function: str, theirs: Array) -> Array:
        """A result of the other library in chasles' coordinates."""
        if function == "forward_kinematics":
            mine = theirs
        elif function == "jacobian":
            mine = theirs @ self.T
        elif function == "mass_matrix" or function in DERIVED:
            assert self.T.ndim == 2 or function == "mass_matrix", "T depends on q: it has a slope"
            mine = self._back @ theirs @ self.T
        elif function == "linearize":
            assert self.T.ndim == 2, "T depends on q: it has a slope"
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
