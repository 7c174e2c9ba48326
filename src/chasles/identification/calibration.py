"""`chasles.calibrate`: joint offsets and placements of links from measured poses or points.

The pose of a frame is a product of placements P_i, which may be wrong, and joint motions A_i(q).
A correction P_i exp(xi_i) moves the frame by Ad(T^-1 T_i) xi_i, in the axes of the frame, where T
is the pose of the frame and T_i is the pose of the corrected joint frame. The twists xi_i are found
by Gauss-Newton steps. A joint offset is a twist along the joint's axis.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from chasles.errors import InputError
from chasles.functions.doors import check_robot, numbers
from chasles.model.given import some_names
from chasles.names import one_of
from chasles.robot import Robot

KINDS = ("offset", "placement", "base", "tool")
"""Unknowns of a calibration: joint offsets, joint placements, base pose and tool pose.
If the effects of two unknowns coincide, the one listed first in `include` is corrected.
"""

AXES = ("rx", "ry", "rz", "x", "y", "z")
"""Names of the entries of a small displacement: rotations (rad), then translations (m)."""

ROUNDS, DONE = 50, 1e-12
"""Limits of the Gauss-Newton iteration.

`ROUNDS` is the maximum number of steps. The iteration stops when a step is below `DONE` (rad or m).
"""

Poses = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Joint placements (k, 4, 4), base pose (4, 4) and tool pose (4, 4)."""

ALIKE = 1e-4
"""Threshold for identifiable corrections, relative to the norm of the correction's Jacobian column.

A correction is identifiable if the component of its Jacobian column orthogonal to earlier columns
has a norm above the threshold.
"""


@dataclass(frozen=True)
class Calibrated:
    """Result of a kinematic calibration from measured poses or points.

    Attributes
    ----------
    robot : Robot
        New robot with corrected joint placements. The placements include the joint offsets, so
        measured positions q need no correction.
    base : ndarray, (4, 4)
        Pose of the robot's world frame in the measurement frame.
    tool : ndarray, (4, 4)
        Pose of the measured tool frame in the robot's `frame`. If points are measured, the last
        column contains the position of the point.
    names : tuple of str
        Identifiable corrections, such as "elbow.offset", "elbow.x" or "tool.rz".
    values : ndarray, (k,)
        Corrections: rotations about (rad) or translations along (m) the axes of the joint, the base
        or the tool.
    deviations : ndarray, (k,)
        Standard deviations of the corrections.
    fixed : tuple of str
        Corrections that are set to zero, because the measurements cannot distinguish their effects
        from those of the corrections in `names`.
    before, after : ndarray
        Root mean square errors before and after calibration: position error (m) and, for poses,
        angle error (rad). If base and tool are unknown, they are fitted in both cases.
    """

    robot: Robot
    base: np.ndarray
    tool: np.ndarray
    names: tuple[str, ...]
    values: np.ndarray
    deviations: np.ndarray
    fixed: tuple[str, ...]
    before: np.ndarray
    after: np.ndarray

    def __repr__(self) -> str:
        name, count = self.robot.name, len(self.names)
        return f"<Calibrated {name!r}: {count} corrections, {self.after[0]:.3g} m rms error>"


def calibrate(
    robot: Robot,
    q: Any,
    *,
    poses: Any = None,
    points: Any = None,
    frame: str | None = None,
    include: Sequence[str] = ("base", "tool", "offset"),
) -> Calibrated:
    """Correct a robot's joint offsets and link placements from measured poses or points.

    Parameters
    ----------
    robot : Robot
        A robot without closed loops.
    q : array_like, (n, nq)
        Measured joint positions (rad or m).
    poses : array_like, (n, 4, 4), optional
        Measured tool poses in the frame of the measuring device.
    points : array_like, (n, 3), optional
        Measured positions of a tool point (m), instead of poses.
    frame : str, optional
        Frame that carries the tool. Default: `robot.tool`.
    include : sequence of str
        Unknowns: "base" and "tool" (their poses), "offset" (of joints with one degree of freedom),
        "placement" (position and orientation of each joint in its parent link). If two unknowns
        have the same effect, only the unknown that is listed first is corrected.

    Returns
    -------
    Calibrated
        Corrected robot, base and tool poses, corrections with their standard deviations, and rms
        errors before and after calibration.

    Raises
    ------
    InputError
        If the robot has closed loops, if an array has the wrong shape or is not finite, if both
        `poses` and `points` are given or neither, or if an entry of `include` is unknown.
    ArgumentError
        If `robot` is not a Robot, or if `include` is not a sequence of names.

    Notes
    -----
    Position and angle errors are divided by their rms values. See Hollerbach, Khalil and Gautier
    (2016), Model Identification, Springer Handbook of Robotics, section 8.2.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.puma560()
    >>> q = robot.random(0, size=40)
    >>> poses = robot.forward_kinematics(q)
    >>> found = chasles.calibrate(robot, q + 0.01, poses=poses, include=["offset"])
    >>> found.values.round(6)
    array([-0.01, -0.01, -0.01, -0.01, -0.01, -0.01])
    """
    check_robot("calibrate", robot)
    if len(robot.independent) < robot.nv:
        problem = "calibration of closed loops is not supported"
        raise InputError("E-IDENT-031", problem, "calibrate an open chain", part="calibrate")
    kinds = tuple(dict.fromkeys(some_names("include", include, "calibrate")))
    for name in kinds:
        if name not in KINDS:
            problem = f"unknown entry in `include`: {name!r}"
            raise InputError("E-IDENT-032", problem, one_of(name, KINDS), part="calibrate")
    readings, target = _measured(robot, q, poses, points)
    chain = Chain.from_robot(robot, readings, robot.tool if frame is None else frame)
    return _Search(robot, chain, target, kinds).run()


def _measured(robot: Robot, q: Any, poses: Any, points: Any) -> tuple[np.ndarray, np.ndarray]:
    """Check measurements; return readings (n, nq), and poses (n, 4, 4) or points (n, 3)."""
    readings = numbers("calibrate: q", q, robot.nq).astype(float).reshape(-1, robot.nq)
    if (poses is None) == (points is None):
        problem = "pass either `poses` or `points`"
        raise InputError("E-IDENT-033", problem, part="calibrate")
    shape = (len(readings), 3) if poses is None else (len(readings), 4, 4)
    target = numbers("calibrate: measurements", points if poses is None else poses, shape[-1])
    if target.shape != shape:
        problem = f"the measurements must have shape {shape}, not {target.shape}"
        raise InputError(
            "E-IDENT-034", problem, "pass one measurement per row of q", part="calibrate"
        )
    if not np.all(np.isfinite(target)):
        row = int(np.argwhere(~np.isfinite(target))[0, 0])
        problem = f"measurement {row} is not finite"
        raise InputError(
            "E-IDENT-049", problem, "remove this measurement and its row of q", part="calibrate"
        )
    return readings, target.astype(float)


@dataclass(frozen=True)
class Chain:
    """Chain of joints from the world to a frame, at n sets of measured joint positions.

    Attributes
    ----------
    links : (k + 1, 4, 4)
        Constant transforms from the previous joint's child link (or the world) to each joint's
        parent link, and from the last joint's child link to the frame.
    placements : (k, 4, 4)
        Joint placements.
    motions : (k, n, 4, 4)
        Joint transforms for each set of measured joint positions.
    twists
        Twist (6,) for a unit offset of each joint, in the joint's frame; None if the joint cannot
        have an offset.
    """

    joints: tuple[str, ...]
    links: np.ndarray
    placements: np.ndarray
    motions: np.ndarray
    twists: tuple[np.ndarray | None, ...]

    @classmethod
    def from_robot(cls, robot: Robot, q: np.ndarray, frame: str) -> "Chain":
        """Return the chain from the world to a frame, with joint transforms at the measured q."""
        names = _path(robot, frame)
        here = np.broadcast_to(np.eye(4), (len(q), 4, 4))
        links, placements, motions, twists = [], [], [], []
        for name in names:
            joint = robot.joint(name)
            parent = here if joint.parent is None else _poses(robot, q, joint.parent)
            P = np.array(joint.pose.homogeneous.rows, float)
            child = _poses(robot, q, joint.child)
            links.append(np.linalg.solve(here, parent)[0])
            placements.append(P)
            motions.append(np.linalg.solve(parent @ P, child))
            twists.append(_twist(joint))
            here = child
        links.append(np.linalg.solve(here, _poses(robot, q, frame))[0])
        made = np.array(placements).reshape(-1, 4, 4), np.array(motions).reshape(-1, len(q), 4, 4)
        return cls(names, np.array(links), *made, tuple(twists))

    def poses(
        self, placements: np.ndarray, base: np.ndarray
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the poses (n, 4, 4) of the fixed side of each joint, and of the tool frame."""
        here = np.broadcast_to(base, (self.motions.shape[1], 4, 4))
        found = []
        for before, P, A in zip(self.links[:-1], placements, self.motions, strict=True):
            found.append(here @ before @ P)
            here = found[-1] @ A
        return found, here @ self.links[-1]


def _poses(robot: Robot, q: np.ndarray, frame: str) -> np.ndarray:
    return np.asarray(robot.forward_kinematics(q, frame=frame), float)


def _path(robot: Robot, frame: str) -> tuple[str, ...]:
    """Return the names of the moving joints from the world to a frame."""
    model, found = robot.model, []
    i = model.frame(frame).body
    while i in model.in_file_order:
        found.append(model.bodies[i].data.name)
        i = model.bodies[i].parent
    return tuple(reversed(found))


def _twist(joint: Any) -> np.ndarray | None:
    """Return the twist (angular, linear) of a joint for unit velocity, in the joint's frame.

    Return None unless the joint is revolute, prismatic or helical.
    """
    axis = np.array([float(x) for x in joint.axis])
    sign = -1.0 if joint.reversed else 1.0
    if joint.kind in ("revolute", "continuous"):
        return sign * np.append(axis, np.zeros(3))
    if joint.kind == "prismatic":
        return sign * np.append(np.zeros(3), axis)
    return sign * np.append(axis, joint.pitch * axis) if joint.kind == "helical" else None


@dataclass
class _Search:
    """Calibration by Gauss-Newton steps, which start from the robot's own joint placements."""

    robot: Robot
    chain: Chain
    target: np.ndarray
    kinds: tuple[str, ...]

    def run(self) -> Calibrated:
        """Fit the base and tool poses first, then all identifiable corrections together."""
        chain = self.chain
        names, directions, groups = self._unknowns()
        outer = [k for k, name in enumerate(names) if groups[k] < 0]
        base = self._aligned() if "base" in self.kinds else np.eye(4)
        at = (chain.placements.copy(), base, np.eye(4))
        at, total, _ = self._fitted(at, directions, groups, outer)
        before = self._rms(*at)
        at, more, W = self._fitted(at, directions, groups, list(range(len(names))))
        kept = np.flatnonzero(np.any(W, axis=0))
        covariance = np.linalg.pinv(W[:, kept].T @ W[:, kept])
        scale = len(W) / max(len(W) - len(kept), 1)
        values = {f"{name}.placement": P for name, P in zip(chain.joints, at[0], strict=True)}
        return Calibrated(
            robot=self.robot.with_parameters(values),
            base=at[1],
            tool=at[2],
            names=tuple(names[k] for k in kept),
            values=(total + more)[kept],
            deviations=np.sqrt(scale * np.diagonal(covariance)),
            fixed=tuple(name for k, name in enumerate(names) if k not in kept),
            before=before,
            after=self._rms(*at),
        )

    def _fitted(
        self, at: Poses, directions: np.ndarray, groups: np.ndarray, chosen: list[int]
    ) -> tuple[Poses, np.ndarray, np.ndarray]:
        """Fit the chosen unknowns by damped Gauss-Newton steps.

        Return the fitted placements, base and tool, the sum of the steps, and the weighted
        Jacobian, whose columns are zero for unknowns that are not identifiable at the start.
        """
        total = np.zeros(len(groups))
        error, J = self._equations(*at, directions, groups)
        kept = [chosen[k] for k in _independent(J[:, chosen] * self._weights(error)[:, None])]
        W = np.zeros_like(J)
        for _ in range(ROUNDS):
            weights = self._weights(error)
            W[:, kept] = J[:, kept] * weights[:, None]
            step = np.zeros(len(groups))
            step[kept] = np.linalg.lstsq(W[:, kept], weights * error.ravel(), rcond=None)[0]
            before, share = float(np.sum((weights * error.ravel()) ** 2)), 1.0
            while True:
                new = _moved(at, directions * (share * step)[:, None], groups)
                error, J = self._equations(*new, directions, groups)
                if np.sum((weights * error.ravel()) ** 2) <= before or share < 1e-6:
                    break
                share *= 0.5
            at, total = new, total + share * step
            if np.abs(share * step).max(initial=0.0) < DONE:
                break
        return at, total, W

    def _weights(self, error: np.ndarray) -> np.ndarray:
        """Return the equation weights: reciprocals of the rms angle and position errors."""
        sizes = np.maximum(self._sizes(error), 1e-12)
        return np.tile(np.repeat(1.0 / sizes, 3), len(error))

    def _aligned(self) -> np.ndarray:
        """Return the base pose that best aligns predicted and measured positions (Kabsch)."""
        _, here = self.chain.poses(self.chain.placements, np.eye(4))
        found = here[:, :3, 3]
        measured = self.target if self.target.ndim == 2 else self.target[:, :3, 3]
        a, b = found - found.mean(axis=0), measured - measured.mean(axis=0)
        base = np.eye(4)
        base[:3, :3] = scipy.spatial.transform.Rotation.align_vectors(b, a)[0].as_matrix()
        base[:3, 3] = measured.mean(axis=0) - base[:3, :3] @ found.mean(axis=0)
        return base

    def _unknowns(self) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Return the names of unknowns, their twists (k, 6), and the placements that they correct.

        A placement is given by the index of its joint, -1 for the base, or -2 for the tool.
        """
        names, directions, groups = [], [], []
        for kind in self.kinds:
            for k, joint in enumerate(self.chain.joints):
                if kind == "offset" and (twist := self.chain.twists[k]) is not None:
                    names.append(f"{joint}.offset")
                    directions.append(twist)
                    groups.append(k)
                elif kind == "placement":
                    names += [f"{joint}.{axis}" for axis in AXES]
                    directions += list(np.eye(6))
                    groups += [k] * 6
            if kind in ("base", "tool"):
                names += [f"{kind}.{axis}" for axis in AXES]
                directions += list(np.eye(6))
                groups += [-1 if kind == "base" else -2] * 6
        return names, np.array(directions).reshape(-1, 6), np.array(groups, int)

    def _equations(
        self, placements: np.ndarray, base: np.ndarray, tool: np.ndarray,
        directions: np.ndarray, groups: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Return residuals (n, 3 or 6) in the tool's axes, and the Jacobian of the predictions.

        The Jacobian has a row for each residual entry and a column for each unknown.
        """
        joints, end = self.chain.poses(placements, base)
        T = end @ tool
        error = self._errors(T)
        places = {-1: np.broadcast_to(base, T.shape), -2: T} | dict(enumerate(joints))
        blocks = []
        for group, twist in zip(groups, directions, strict=True):
            M = np.linalg.solve(T, places[group])
            turn = M[:, :3, :3] @ twist[:3]
            shift = np.cross(M[:, :3, 3], turn) + M[:, :3, :3] @ twist[3:]
            whole = shift if error.shape[1] == 3 else np.concatenate([turn, shift], axis=1)
            blocks.append(whole.reshape(-1))
        return error, np.array(blocks).reshape(len(blocks), -1).T

    def _errors(self, T: np.ndarray) -> np.ndarray:
        """Return measured minus predicted poses (angles first) or points, in the tool's axes."""
        R = np.swapaxes(T[:, :3, :3], 1, 2)
        if self.target.ndim == 2:
            return np.einsum("nij,nj->ni", R, self.target - T[:, :3, 3])
        turn = scipy.spatial.transform.Rotation.from_matrix(R @ self.target[:, :3, :3]).as_rotvec()
        shift = np.einsum("nij,nj->ni", R, self.target[:, :3, 3] - T[:, :3, 3])
        return np.concatenate([turn, shift], axis=1)

    def _sizes(self, error: np.ndarray) -> np.ndarray:
        """Return the rms angle error (poses only) and the rms position error, per coordinate."""
        return np.sqrt(np.mean(error.reshape(len(error), -1, 3) ** 2, axis=(0, 2)))

    def _rms(self, placements: np.ndarray, base: np.ndarray, tool: np.ndarray) -> np.ndarray:
        """Return the rms position error and, for poses, the rms angle error."""
        error = self._errors(self.chain.poses(placements, base)[1] @ tool)
        return np.sqrt(3.0) * self._sizes(error)[::-1]


def _moved(at: Poses, xi: np.ndarray, groups: np.ndarray) -> Poses:
    """Return the poses of joints, base and tool after small corrections by twists `xi` (k, 6)."""
    placements, base, tool = at
    each = [P @ _exp(xi[groups == k].sum(axis=0)) for k, P in enumerate(placements)]
    moved = [X @ _exp(xi[groups == k].sum(axis=0)) for X, k in ((base, -1), (tool, -2))]
    return np.array(each).reshape(-1, 4, 4), moved[0], moved[1]


def _independent(W: np.ndarray) -> list[int]:
    """Return the indices of columns that are independent of all earlier columns."""
    kept: list[int] = []
    Q, least = np.zeros((len(W), 0)), 1e-9 * np.linalg.norm(W, axis=0).max(initial=0.0)
    for k, column in enumerate(W.T):
        size = np.linalg.norm(column)
        rest = column - Q @ (Q.T @ column)
        rest = rest - Q @ (Q.T @ rest)
        if size > least and np.linalg.norm(rest) > ALIKE * size:
            kept.append(k)
            Q = np.column_stack([Q, rest / np.linalg.norm(rest)])
    return kept


def _exp(xi: np.ndarray) -> np.ndarray:
    """Convert a small twist (rotation vector, translation) to a pose (4, 4)."""
    T = np.eye(4)
    T[:3, :3] = scipy.spatial.transform.Rotation.from_rotvec(xi[:3]).as_matrix()
    T[:3, 3] = xi[3:]
    return T
