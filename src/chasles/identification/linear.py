"""The linear model of identification: joint torques are a matrix times unknown parameters."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular

from chasles.errors import InputError
from chasles.functions import numeric
from chasles.functions.doors import numbers
from chasles.model.given import some_names
from chasles.robot import Robot

ENTRIES = ("mass", "hx", "hy", "hz", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
"""Ten parameters of a body: mass, first moment, inertia about the origin of its link's frame."""

JOINT_TERMS = ("armature", "damping", "friction", "offset")
"""Terms that may be identified at joints with one degree of freedom, in addition to the inertias:
armature * qdd + damping * qd + friction * sign(qd) + offset.
"""

CHUNK = 2048
"""Number of states whose regressors are in memory at once."""

SAMPLE = 500
"""Number of states that determine the base parameters of closed loops."""

TOLERANCE = 1e-8
"""Fraction of a column that must be independent for its parameter to be a base parameter."""


@dataclass(frozen=True)
class LinearModel:
    """tau = A(q, qd, qdd) x + known, for a robot and its unknown terms.

    Rows are the robot's velocity coordinates or, with closed loops, the independent ones, on which
    loop forces do no work. x has ten entries for each of `robot.moving_joints`, followed by one
    entry for each term and joint.
    """

    robot: Robot
    terms: tuple[str, ...]

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Joints with one degree of freedom, which may have joint terms."""
        robot = self.robot
        places = {name: robot.velocity_slice(name) for name in robot.joints}
        return tuple(name for name, at in places.items() if at.stop - at.start == 1)

    @cached_property
    def links(self) -> tuple[str, ...]:
        """Link in whose frame the parameters of each body are expressed."""
        robot = self.robot
        return tuple(robot.model.bodies[i].name for i in robot.model.in_file_order)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the entries of x."""
        inertias = [f"{link}.{entry}" for link in self.links for entry in ENTRIES]
        return (*inertias, *(f"{joint}.{term}" for term in self.terms for joint in self.joints))

    @cached_property
    def columns(self) -> np.ndarray:
        """Indices of the velocity coordinates of `joints`."""
        return np.array([self.robot.velocity_slice(name).start for name in self.joints], int)

    @cached_property
    def free(self) -> int:
        """Number of rows: degrees of freedom of the closed loops."""
        return len(self.robot.independent)

    @cached_property
    def bare(self) -> Robot:
        """The robot without armature, if armature is identified."""
        if "armature" not in self.terms:
            return self.robot
        return self.robot.with_parameters({f"{joint}.armature": 0.0 for joint in self.joints})

    @property
    def nominal(self) -> np.ndarray:
        """Entries of x in the given robot."""
        joints = [self.robot.joint(name) for name in self.joints]
        rest = [[getattr(joint, term, 0.0) for joint in joints] for term in self.terms]
        return np.concatenate([self.robot.inertial_parameters(), *rest])

    def matrix(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return A (n, nv, k) in the coordinates of the tree."""
        Y = self.robot.regressor(q, qd, qdd)
        parts, rows = [Y], self.columns
        made = {"armature": qdd, "damping": qd, "friction": np.sign(qd), "offset": np.ones_like(qd)}
        for term in self.terms:
            block = np.zeros((*Y.shape[:-1], len(rows)))
            block[:, rows, np.arange(len(rows))] = made[term][:, rows]
            parts.append(block)
        return np.concatenate(parts, axis=-1)

    def known(self, q: Any, qd: Any, qdd: Any, f_ext: Any = None) -> np.ndarray:
        """Return the known torques (n, nv) of springs, external forces and rotors."""
        whole = self.bare.inverse_dynamics(q, qd, qdd, f_ext=f_ext)
        parts = [
            self._inertial(q[k : k + CHUNK], qd[k : k + CHUNK], qdd[k : k + CHUNK])
            for k in range(0, len(q), CHUNK)
        ]
        return np.asarray(whole - np.concatenate(parts))

    def _inertial(self, q: Any, qd: Any, qdd: Any) -> np.ndarray:
        """Return the torques of the robot's inertias."""
        return np.asarray(self.robot.regressor(q, qd, qdd) @ self.robot.inertial_parameters())

    def rows(self, q: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Project torques or their matrix (n, nv, ...) onto the rows of the model.

        With closed loops, row k is the power at unit independent velocity k, with the corresponding
        velocities of the tree.
        """
        if self.free == self.robot.nv:
            return values
        N = self.robot.complete(q[:, None, :], np.eye(self.free))
        found = N @ values.reshape(*values.shape[:2], -1)
        return found.reshape(*found.shape[:2], *values.shape[2:])


@dataclass(frozen=True)
class Base:
    """Combinations of parameters that torques depend on: A x = A[..., columns] (combination x)."""

    columns: np.ndarray
    combination: np.ndarray

    def __len__(self) -> int:
        return len(self.columns)


def base(model: LinearModel, rng: np.random.Generator, states: Sequence[np.ndarray]) -> Base:
    """Find the base parameters of a linear model (Gautier 1991).

    They are determined from random states or, for a robot with closed loops, from at most `SAMPLE`
    of the given states.
    """
    q, qd, qdd = states
    if model.free < model.robot.nv:
        chosen = rng.permutation(len(q))[:SAMPLE]
        q, qd, qdd = q[chosen], qd[chosen], qdd[chosen]
    else:
        count = 20 + 6 * len(model.names) // max(model.robot.nv, 1)
        steps, qd, qdd = numeric.random_states(model.robot.model, count, rng)
        q = model.robot.integrate(model.robot.neutral(), steps)
    A = model.rows(q, model.matrix(q, qd, qdd))
    scaled = A.reshape(-1, A.shape[-1])
    lengths = np.linalg.norm(scaled, axis=0)
    felt = np.flatnonzero(lengths > TOLERANCE * lengths.max(initial=0.0))
    R, order = qr(scaled[:, felt] / lengths[felt], mode="r", pivoting=True)
    size = np.abs(np.diagonal(R))
    rank = int(np.sum(size > TOLERANCE * size.max(initial=0.0)))
    columns = felt[order[:rank]]
    combination = np.zeros((rank, A.shape[-1]))
    combination[np.arange(rank), columns] = 1.0
    rest = solve_triangular(R[:rank, :rank], R[:rank, rank:])
    rest = np.where(np.abs(rest) > TOLERANCE, rest, 0.0)
    others = felt[order[rank:]]
    combination[:, others] = rest * lengths[others] / lengths[columns][:, None]
    ascending = np.argsort(columns)
    return Base(columns[ascending], combination[ascending])


def samples(robot: Robot, function: str, *arrays: Any) -> list[np.ndarray]:
    """Return q, qd, qdd, and tau if given, as finite arrays with one row per sample."""
    names = ("q", "qd", "qdd", "tau")
    found = {}
    for name, given in zip(names, arrays, strict=False):
        width = robot.nq if name == "q" else robot.nv
        array = numbers(f"{function}: {name}", given, width)
        array = array.astype(float).reshape(math.prod(array.shape[:-1]), width)
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            problem = f"{name} is not finite at row {bad[0][0]}, column {bad[0][1]}"
            remedy = "remove or replace these samples"
            raise InputError("E-IDENT-007", problem, remedy, part=function)
        found[name] = array
    counts = {name: len(array) for name, array in found.items()}
    if len(set(counts.values())) > 1:
        each = ", ".join(f"{n} has {c}" for n, c in counts.items())
        problem = f"numbers of samples differ: {each}"
        raise InputError("E-IDENT-008", problem, "give one row per sample", part=function)
    if not counts["q"] or not robot.nv:
        problem = "there are no samples" if robot.nv else "the robot has no joint that moves"
        raise InputError("E-IDENT-009", problem, part=function)
    return list(found.values())


def checked_terms(include: Sequence[str]) -> tuple[str, ...]:
    """Return the joint terms in `include`, in the order of `JOINT_TERMS`."""
    known = ("inertia", *JOINT_TERMS)
    include = some_names("include", include, "identify")
    for name in include:
        if name not in known:
            problem = f"{name!r} cannot be identified"
            raise InputError("E-IDENT-001", problem, f"include {', '.join(known)}", part="identify")
    return tuple(term for term in JOINT_TERMS if term in include)
