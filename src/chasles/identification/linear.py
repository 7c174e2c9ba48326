"""Linear model for identification: joint torques as a linear function of unknown parameters."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from chasles.errors import InputError
from chasles.functions import numeric
from chasles.functions.doors import numbers
from chasles.functions.tracing import WrenchKey
from chasles.identification.unknowns import (
    ENTRIES,
    INCLUDED,
    TERMS,
    At,
    Body,
    moving_links,
    own_bodies,
    single_joints,
)
from chasles.model.given import a_number, some_names
from chasles.names import one_of, similar
from chasles.robot import Robot

SLIP = 0.1
"""Default Stribeck velocity (rad/s or m/s)."""

SHARE, SLOW = 0.01, {"rad": 0.05, "m": 0.005}
"""Default threshold below which a joint velocity counts as zero.

The threshold is `SHARE` times the joint's velocity limit, but at most `SLOW`. `SLOW` is in rad/s
for rotations and in m/s for translations.
"""

CHUNK = 2048
"""Number of states whose regressors are held in memory at once."""

SAMPLE = 500
"""Number of states used to find the base parameters of a robot with closed loops."""

TOLERANCE = 1e-8
"""Relative size of QR pivots below which columns count as linearly dependent."""


@dataclass(frozen=True)
class LinearModel:
    """Linear model tau = A(q, qd, qdd) x + known for a robot with unknown parameters x.

    Each row belongs to a velocity coordinate of the robot. With closed loops, the rows belong to
    the independent velocity coordinates, along which loop forces do no work. x has ten entries for
    each of `bodies`, followed by one entry for each of `unknowns`.

    Attributes
    ----------
    terms
        Keys of `TERMS`, for all joints ("friction") or for one joint ("elbow.friction").
    given
        Bodies whose parameters are unknown; None for all bodies of the robot.
    slip
        Stribeck velocity (rad/s or m/s).
    wrenches
        Frames and axes of measured external wrenches.
    slowest
        For each velocity coordinate, the speed up to which a joint with dry friction is considered
        at rest.
    """

    robot: Robot
    terms: tuple[str, ...]
    given: tuple[Body, ...] | None = None
    slip: float = SLIP
    wrenches: tuple[WrenchKey, ...] = ()
    slowest: tuple[float, ...] | None = None

    @cached_property
    def bodies(self) -> tuple[Body, ...]:
        """Bodies with unknown parameters."""
        return own_bodies(self.robot) if self.given is None else self.given

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Joints with one degree of freedom, which may have terms such as friction or damping."""
        return single_joints(self.robot)

    @cached_property
    def unknowns(self) -> tuple[tuple[str, str], ...]:
        """Kind and joint of each unknown joint term, such as friction."""
        return tuple(
            (kind, joint)
            for kind in TERMS
            for joint in self.joints
            if kind in self.terms or f"{joint}.{kind}" in self.terms
        )

    @cached_property
    def links(self) -> tuple[str, ...]:
        """Names of the bodies with unknown parameters."""
        return tuple(body.name for body in self.bodies)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the unknown parameters, the entries of x."""
        inertias = [f"{link}.{entry}" for link in self.links for entry in ENTRIES]
        return (*inertias, *(f"{joint}.{kind}" for kind, joint in self.unknowns))

    @cached_property
    def columns(self) -> np.ndarray:
        """Velocity indices of the joints with one degree of freedom."""
        return np.array([self.robot.velocity_slice(name).start for name in self.joints], int)

    @cached_property
    def free(self) -> int:
        """Number of independent velocity coordinates, equal to the number of rows per state."""
        return len(self.robot.independent)

    @cached_property
    def bare(self) -> Robot:
        """The robot with all unknown armatures and stiffnesses set to 0, for `inverse_dynamics`."""
        counted = {f"{joint}.{kind}": 0.0 for kind, joint in self.unknowns if TERMS[kind].counted}
        return self.robot.with_parameters(counted) if counted else self.robot

    @cached_property
    def map(self) -> np.ndarray | None:
        """Matrix that maps the unknown inertial parameters to those of all moving bodies.

        The value is None if this matrix would be the identity.
        """
        if self.given is None:
            return None
        found = np.zeros((10 * len(moving_links(self.robot)), 10 * len(self.bodies)))
        for k, body in enumerate(self.bodies):
            for index, T in body.parts:
                found[10 * index : 10 * index + 10, 10 * k : 10 * k + 10] = T
        return found

    @property
    def nominal(self) -> np.ndarray:
        """Values of the unknown parameters x in the given robot."""
        rest = []
        for kind, joint in self.unknowns:
            written = TERMS[kind].written
            rest.append(getattr(self.robot.joint(joint), written[0]) if written else 0.0)
        return np.concatenate([*(body.nominal for body in self.bodies), rest])

    def matrix(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return the model matrix A (n, nv, k) for n states, without loop constraints."""
        Y = self._inertias(q, qd, qdd)
        block = np.zeros((*Y.shape[:-1], len(self.unknowns)))
        for k, (kind, joint) in enumerate(self.unknowns):
            row, at = self.state(joint, q, qd, qdd)
            block[:, row, k] = TERMS[kind].column(at)
        return np.concatenate([Y, block], axis=-1)

    def state(self, joint: str, q: Any, qd: Any, qdd: Any, sign: Any = np.sign) -> tuple[int, At]:
        """Return a joint's index in qd, and its position, velocity and acceleration in n samples.

        Joint terms, such as friction, are functions of position, velocity and acceleration.
        """
        row, place, rest = self.place(joint)
        rate = qd[:, row]
        return row, At(q[:, place] - rest, rate, qdd[:, row], sign(rate), self.slip)

    @cached_property
    def dry(self) -> tuple[int, ...]:
        """Velocity coordinates of the joints with dry friction."""
        joints = dict.fromkeys(joint for kind, joint in self.unknowns if TERMS[kind].dry)
        return tuple(self.robot.velocity_slice(joint).start for joint in joints)

    def rest(self, row: int) -> float:
        """Return the largest speed of coordinate `row` at which its joint is considered at rest."""
        return 0.0 if self.slowest is None else self.slowest[row]

    def moving(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return a mask (n, rows) of equations in which no joint with dry friction is at rest.

        At rest, the torque of dry friction may have any value up to its limit.
        """
        resting = np.zeros((len(q), self.robot.nv, len(self.dry)))
        for k, row in enumerate(self.dry):
            resting[:, row, k] = np.abs(qd[:, row]) <= self.rest(row)
        return np.all(np.abs(self.rows(q, resting)) < TOLERANCE, axis=-1)

    def slopes(
        self, kind: str, joint: str, states: Sequence[np.ndarray], width: float
    ) -> list[np.ndarray]:
        """Return derivatives of a joint term's column with respect to the joint's q, qd and qdd.

        The sign of the velocity is smoothed over `width`. The derivatives are exact, because they
        are computed by complex steps.
        """
        found = []
        for k in range(3):
            q, qd, qdd = (x + 1e-30j if j == k else x for j, x in enumerate(states))
            _, at = self.state(joint, q, qd, qdd, sign=lambda qd: np.tanh(qd / width))
            found.append(np.imag(TERMS[kind].column(at)) * 1e30 + np.zeros(len(states[0])))
        return found

    def place(self, joint: str) -> tuple[int, int, float]:
        """Return a joint's index in qd, its index in q, and the rest position of its spring."""
        robot = self.robot
        rest = (*robot.joint(joint).rest, 0.0)[0]
        return robot.velocity_slice(joint).start, robot.position_slice(joint).start, float(rest)

    def known(self, q: Any, qd: Any, qdd: Any, f_ext: Any = None) -> np.ndarray:
        """Return the torques (n, nv) due to springs, external forces, rotors and known bodies."""
        whole = self.bare.inverse_dynamics(q, qd, qdd, f_ext=f_ext)
        parts = [
            self._inertial(q[k : k + CHUNK], qd[k : k + CHUNK], qdd[k : k + CHUNK])
            for k in range(0, len(q), CHUNK)
        ]
        return np.asarray(whole - np.concatenate(parts))

    def _inertias(self, q: Any, qd: Any, qdd: Any) -> np.ndarray:
        """Return the regressor columns of the bodies with unknown parameters."""
        Y = np.asarray(self.robot.regressor(q, qd, qdd))
        return Y if self.map is None else Y @ self.map

    def _inertial(self, q: Any, qd: Any, qdd: Any) -> np.ndarray:
        """Return torques due to bodies with unknown parameters, for nominal parameter values."""
        nominal = np.concatenate([body.nominal for body in self.bodies])
        return self._inertias(q, qd, qdd) @ nominal

    def motors(self, gains: np.ndarray) -> np.ndarray:
        """Return a diagonal matrix (nv, nv) of motor gains; joints without a motor have gain 1."""
        found = np.ones(self.robot.nv)
        for name, value in self.by_motor(gains).items():
            if name in self.joints:
                found[self.robot.velocity_slice(name).start] = value
        return np.diag(found)

    def by_motor(self, values: np.ndarray) -> dict[str, float]:
        """Return the values as a dict with the names of the independent coordinates as keys."""
        return dict(zip(self.robot.independent, map(float, values), strict=True))

    def rows(self, q: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Project torques, or a torque matrix (n, nv, ...), onto the independent coordinates.

        With closed loops, row k is the power of the torques for a motion in which the independent
        velocity k is 1 and all other independent velocities are 0.
        """
        if self.free == self.robot.nv:
            return values
        N = self.robot.complete(q[:, None, :], np.eye(self.free))
        found = N @ values.reshape(*values.shape[:2], -1)
        return found.reshape(*found.shape[:2], *values.shape[2:])


@dataclass(frozen=True)
class Base:
    """Base parameters `combination @ x`, which determine the torques A x of a linear model.

    The product A @ x equals A[..., columns] @ (combination @ x).
    """

    columns: np.ndarray
    combination: np.ndarray

    def __len__(self) -> int:
        return len(self.columns)


def base(model: LinearModel, rng: np.random.Generator, states: Sequence[np.ndarray]) -> Base:
    """Find the base parameters of a linear model (Gautier 1991).

    Without closed loops, the model is evaluated at random states. With closed loops, the model is
    evaluated at up to `SAMPLE` of the given positions, with random velocities and accelerations.
    """
    q = states[0]
    if model.free < model.robot.nv:
        q = np.resize(q[rng.permutation(len(q))[:SAMPLE]], (SAMPLE, model.robot.nq))
        qd, qdd = model.robot.complete(q, *rng.normal(size=(2, SAMPLE, model.free)))
    else:
        count = 20 + 6 * len(model.names) // max(model.robot.nv, 1)
        steps, qd, qdd = numeric.random_states(model.robot.model, count, rng)
        q = model.robot.integrate(model.robot.neutral(), steps)
    A = model.rows(q, model.matrix(q, qd, qdd))
    scaled = A.reshape(-1, A.shape[-1])
    lengths = np.linalg.norm(scaled, axis=0)
    felt = np.flatnonzero(lengths > TOLERANCE * lengths.max(initial=0.0))
    R, order = scipy.linalg.qr(scaled[:, felt] / lengths[felt], mode="r", pivoting=True)
    size = np.abs(np.diagonal(R))
    rank = int(np.sum(size > TOLERANCE * size.max(initial=0.0)))
    columns = felt[order[:rank]]
    combination = np.zeros((rank, A.shape[-1]))
    combination[np.arange(rank), columns] = 1.0
    rest = scipy.linalg.solve_triangular(R[:rank, :rank], R[:rank, rank:])
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
        raise InputError("E-IDENT-008", problem, "pass one row per sample", part=function)
    if not counts["q"] or not robot.nv:
        problem = "there are no samples" if robot.nv else "the robot has no moving joint"
        raise InputError("E-IDENT-009", problem, part=function)
    return list(found.values())


def rest_velocities(
    robot: Robot, given: float | Mapping[str, float] | None, function: str
) -> tuple[float, ...]:
    """Return one speed threshold for each velocity coordinate.

    A joint is considered at rest if its speed does not exceed the threshold. The default is 1 % of
    the joint's velocity limit, but at most 0.05 rad/s or 0.005 m/s.
    """
    if given is None:
        movers = [robot.model.bodies[i].joint for i in robot.model.movers]
        slow = [SLOW[unit] for joint in movers for unit in joint.velocity_units]
        return tuple(np.minimum(SHARE * robot.limits.velocity, slow).tolist())
    found = np.zeros(robot.nv)
    each = given if isinstance(given, Mapping) else dict.fromkeys(robot.joints, given)
    for joint, value in each.items():
        if joint not in robot.joints:
            problem = f"the robot has no moving joint {joint!r:.60}"
            remedy = one_of(joint, robot.joints)
            raise InputError("E-IDENT-047", problem, remedy, part=f"{function}: rest_velocity")
        found[robot.velocity_slice(joint)] = a_number("rest_velocity", value, function)
    if np.any(~(found >= 0.0)):
        problem = f"`rest_velocity` must not be negative, but is {found.min():g}"
        raise InputError("E-IDENT-048", problem, "pass a velocity in rad/s or m/s", part=function)
    return tuple(map(float, found))


def checked_terms(robot: Robot, include: Sequence[str]) -> tuple[str, ...]:
    """Return the joint terms selected by `include`.

    An entry is a key of `TERMS` for all joints, or `joint.key` for a single joint.
    """
    include, joints = some_names("include", include, "identify"), single_joints(robot)
    found = []
    for name in include:
        joint, _, kind = name.rpartition(".")
        rows = [row for row, term in TERMS.items() if term.include == kind]
        if name != "inertia" and (not rows or joint not in ("", *joints)):
            known = ", ".join(("inertia", *INCLUDED))
            problem = f"{name!r} is not a term that can be identified"
            listed = f"include {known}, or JOINT.TERM for a joint with one degree of freedom"
            terms = ("inertia", *INCLUDED, *(f"{j}.{t}" for j in joints for t in INCLUDED))
            remedy = similar(name, terms) or listed
            raise InputError("E-IDENT-001", problem, remedy, part="identify")
        found += [f"{joint}.{row}" if joint else row for row in rows]
    return tuple(found)
