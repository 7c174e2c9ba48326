"""Results of Pinocchio in the conventions and coordinate order of chasles.

Pinocchio has the linear part first, a free joint as (x, y, z, qx, qy, qz, qw), an unbounded
rotation as (cosine, sine), and its own order of joints. This module matches joints by name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import files
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from support import EPS, direct, relative

import chasles

REFERENCE = {
    ("frame", "frame"): pin.LOCAL,
    ("world", "world"): pin.WORLD,
    ("world", "frame"): pin.LOCAL_WORLD_ALIGNED,
}
"""Pinocchio's reference frame for each pair of axes and point."""

PAIRS = (*REFERENCE, ("frame", "world"))


def robot_files() -> list[Path]:
    """Return all URDF files of the package example-robot-data."""
    listed = files("example-robot-data") or ()
    return sorted(Path(str(f.locate())) for f in listed if f.suffix == ".urdf")


def swapped(a: np.ndarray) -> np.ndarray:
    """Exchange the halves of a 6-vector or of a matrix with six rows."""
    return np.concatenate([a[3:], a[:3]])


class Oracle:
    """Robot in Pinocchio. Arguments and results of all methods are in chasles conventions."""

    def __init__(self, path: Path, *, floating: bool) -> None:
        free = [pin.JointModelFreeFlyer()] if floating else []
        self.model = pin.buildModelFromUrdf(str(path), *free)
        self.data = self.model.createData()

    def order(self, robot: chasles.Robot) -> None:
        """Store the order of the robot's coordinates."""
        assert robot.nv == self.model.nv
        self._joints = [(robot, name, self._joint(robot, name)) for name in robot.joints]
        self._v = np.empty(self.model.nv, dtype=int)
        for _, name, joint in self._joints:
            first = joint.idx_v
            places = np.arange(first, first + joint.nv)
            self._v[robot.velocity_slice(name)] = np.roll(places, 3) if joint.nv == 6 else places

    def _joint(self, robot: chasles.Robot, name: str) -> Any:
        free = robot.joint(name).kind == "free"
        return self.model.joints[self.model.getJointId("root_joint" if free else name)]

    # States -----------------------------------------------------------------------------------

    def position(self, q: np.ndarray) -> np.ndarray:
        """Convert q to Pinocchio's coordinates."""
        out = np.empty(self.model.nq)
        for robot, name, joint in self._joints:
            mine = q[robot.position_slice(name)]
            if joint.nv == 6:
                w, x, y, z, *place = mine
                mine = np.array([*place, x, y, z, w])
            elif joint.nq == 2:
                mine = np.array([np.cos(mine[0]), np.sin(mine[0])])
            out[joint.idx_q : joint.idx_q + joint.nq] = mine
        return out

    def velocity(self, v: np.ndarray) -> np.ndarray:
        """Convert velocities, accelerations or forces to Pinocchio's coordinates."""
        out = np.empty(self.model.nv)
        out[self._v] = v
        return out

    def mine(self, v: np.ndarray) -> np.ndarray:
        """Convert a vector, or the columns of a matrix, to the coordinates of chasles."""
        return np.asarray(v)[..., self._v]

    def square(self, M: np.ndarray) -> np.ndarray:
        """Convert the rows and columns of a square matrix to the coordinates of chasles."""
        return np.asarray(M)[np.ix_(self._v, self._v)]

    # Frames -----------------------------------------------------------------------------------

    def frame(self, name: str) -> int:
        """Return the index of a link's frame."""
        return int(self.model.getFrameId(name, pin.BODY))

    def probe(self, link: str, point: Sequence[float]) -> int:
        """Add a frame at a point of a link, and return its index."""
        base = self.model.frames[self.frame(link)]
        place = base.placement * pin.SE3(np.eye(3), np.array(point, dtype=float))
        new = pin.Frame(f"probe of {link}", base.parentJoint, place, pin.OP_FRAME)
        number = int(self.model.addFrame(new))
        self.data = self.model.createData()
        return number

    def kinematics(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> None:
        """Compute the data for the frame functions below."""
        p, v, a = self.position(q), self.velocity(qd), self.velocity(qdd)
        pin.computeJointJacobiansTimeVariation(self.model, self.data, p, v)
        pin.forwardKinematics(self.model, self.data, p, v, a)
        pin.updateFramePlacements(self.model, self.data)

    def pose(self, frame: int) -> np.ndarray:
        return self.data.oMf[frame].homogeneous

    def jacobian(self, frame: int, axes: str, at: str) -> np.ndarray:
        return self.mine(self._seen(pin.getFrameJacobian, frame, axes, at))

    def jacobian_rate(self, frame: int, axes: str, at: str) -> np.ndarray:
        rate = self._seen(pin.getFrameJacobianTimeVariation, frame, axes, at)
        if (axes, at) == ("frame", "world"):
            w = self.frame_velocity(frame, axes, at)[:3]
            spin = np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])
            J = self._seen(pin.getFrameJacobian, frame, axes, at)
            rate = rate - np.kron(np.eye(2), spin) @ J
        return self.mine(rate)

    def frame_velocity(self, frame: int, axes: str, at: str) -> np.ndarray:
        return self._seen(pin.getFrameVelocity, frame, axes, at)

    def frame_acceleration(self, frame: int, axes: str, at: str, kind: str) -> np.ndarray:
        get = pin.getFrameAcceleration if kind == "spatial" else pin.getFrameClassicalAcceleration
        return self._seen(get, frame, axes, at)

    def _seen(self, get: Callable[..., Any], frame: int, axes: str, at: str) -> np.ndarray:
        """Call a function of Pinocchio for the given axes and point.

        Pinocchio does not support frame axes at the world's origin, so such results are rotated.
        """
        if (axes, at) == ("frame", "world"):
            turn = np.kron(np.eye(2), self.data.oMf[frame].rotation.T)
            return turn @ self._seen(get, frame, "world", "world")
        value = get(self.model, self.data, frame, REFERENCE[axes, at])
        return swapped(getattr(value, "vector", value))

    # Dynamics ---------------------------------------------------------------------------------

    def external(self, f_ext: dict[str, np.ndarray]) -> Any:
        """Convert wrenches of links, in link axes at the link's origin, to forces per joint."""
        forces = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for name, wrench in f_ext.items():
            frame = self.model.frames[self.frame(name)]
            forces[frame.parentJoint] += frame.placement.act(pin.Force(swapped(wrench)))
        forces[0] = pin.Force.Zero()
        vector = pin.StdVec_Force()
        vector.extend(forces)
        return vector

    def inverse_dynamics(self, q, qd, qdd, f_ext=None) -> np.ndarray:
        state = self.position(q), self.velocity(qd), self.velocity(qdd)
        extra = () if f_ext is None else (self.external(f_ext),)
        return self.mine(pin.rnea(self.model, self.data, *state, *extra))

    def joint_reactions(self, q, qd, qdd, f_ext=None) -> np.ndarray:
        self.inverse_dynamics(q, qd, qdd, f_ext)
        rows = []
        for robot, name, _ in self._joints:
            free = robot.joint(name).kind == "free"
            number = self.model.getJointId("root_joint" if free else name)
            rows.append(swapped(self.data.f[number].vector))
        return np.array(rows).reshape(-1, 6)

    def forward_dynamics(self, q, qd, tau, f_ext=None) -> np.ndarray:
        state = self.position(q), self.velocity(qd), self.velocity(tau)
        extra = () if f_ext is None else (self.external(f_ext),)
        return self.mine(pin.aba(self.model, self.data, *state, *extra))

    def bias_forces(self, q, qd) -> np.ndarray:
        state = self.position(q), self.velocity(qd)
        return self.mine(pin.nonLinearEffects(self.model, self.data, *state))

    def gravity_forces(self, q) -> np.ndarray:
        return self.mine(pin.computeGeneralizedGravity(self.model, self.data, self.position(q)))

    def mass_matrix(self, q) -> np.ndarray:
        M = np.triu(pin.crba(self.model, self.data, self.position(q)))
        return self.square(M + np.triu(M, 1).T)

    def mass_matrix_inverse(self, q) -> np.ndarray:
        W = np.triu(pin.computeMinverse(self.model, self.data, self.position(q)))
        return self.square(W + np.triu(W, 1).T)

    def coriolis_matrix(self, q, qd) -> np.ndarray:
        state = self.position(q), self.velocity(qd)
        return self.square(pin.computeCoriolisMatrix(self.model, self.data, *state))

    # Energy and momentum ----------------------------------------------------------------------

    def kinetic_energy(self, q, qd) -> float:
        state = self.position(q), self.velocity(qd)
        return pin.computeKineticEnergy(self.model, self.data, *state)

    def potential_energy(self, q) -> float:
        return pin.computePotentialEnergy(self.model, self.data, self.position(q))

    def center_of_mass(self, q) -> np.ndarray:
        return pin.centerOfMass(self.model, self.data, self.position(q))

    def momentum(self, q, qd) -> np.ndarray:
        state = self.position(q), self.velocity(qd)
        return swapped(pin.computeCentroidalMomentum(self.model, self.data, *state).vector)

    def centroidal_momentum_matrix(self, q) -> np.ndarray:
        return self.mine(swapped(pin.computeCentroidalMap(self.model, self.data, self.position(q))))

    def momentum_at_world(self, q, qd) -> np.ndarray:
        h, c = self.momentum(q, qd), self.center_of_mass(q)
        return np.concatenate([h[:3] + np.cross(c, h[3:]), h[3:]])

    # Configuration space -----------------------------------------------------------------------

    def numbers(self, p: np.ndarray) -> np.ndarray:
        """Return a position of Pinocchio with quaternions replaced by matrices, without a sign."""
        parts = []
        for _, _, joint in self._joints:
            part = p[joint.idx_q : joint.idx_q + joint.nq]
            if joint.nv == 6:
                part = [*part[:3], *pin.Quaternion(part[3:]).normalized().matrix().ravel()]
            parts.append(part)
        return np.concatenate(parts)

    def integrate(self, q, v) -> np.ndarray:
        """Return the new position in Pinocchio's coordinates."""
        return pin.integrate(self.model, self.position(q), self.velocity(v))

    def difference(self, q0, q1) -> np.ndarray:
        return self.mine(pin.difference(self.model, self.position(q0), self.position(q1)))


@dataclass(frozen=True)
class Case:
    """Function call with Pinocchio's result. `of` is applied to the robot's result."""

    function: str
    arrays: tuple[np.ndarray, ...]
    options: dict[str, Any]
    expected: Any
    scale: float = 0.0
    of: Callable[[Any], Any] = lambda value: value
    label: str = ""


def cases(
    oracle: Oracle,
    robot: chasles.Robot,
    *,
    seed: int,
    poses: int,
    frames: int,
    pairs: Sequence[tuple[str, str]] = PAIRS,
    methods: Mapping[str, Sequence[str]],
) -> Iterator[Case]:
    """Yield calls of every function at a random state.

    `poses` and `frames` are the numbers of links, spread over the robot, for which poses and other
    frame functions are compared. `pairs` contains their axes and points. `methods` contains the
    methods of each function.
    """
    rng = np.random.default_rng(seed)
    q = robot.random(rng)
    qd, qdd, tau = rng.normal(size=(3, robot.nv))
    chosen = _spread(robot.bodies, frames)
    point = (0.1, -0.2, 0.3)
    probe = oracle.probe(chosen[0], point)
    oracle.kinematics(q, qd, qdd)
    for name in _spread(robot.bodies, poses):
        expected = oracle.pose(oracle.frame(name)).copy()
        yield Case("forward_kinematics", (q,), {"frame": name}, expected)
    if robot.nv == 0:
        return  # Pinocchio crashes for Jacobians without columns
    views = [(name, oracle.frame(name), axes, at, at) for name in chosen for axes, at in pairs]
    views += [(chosen[0], probe, "frame", point, "frame")]
    fast = float(np.max(np.abs(qd)))
    for name, number, axes, at, there in views:
        option = {"frame": name, "axes": axes, "at": at}
        view = number, axes, there
        J = oracle.jacobian(*view)
        reach = float(np.max(np.abs(J)))  # scale: Jdot of a first joint is zero
        yield Case("jacobian", (q,), option, J)
        rate = oracle.jacobian_rate(*view)
        for method in methods.get("jacobian_rate", ("fastest",)):
            chosen_way = option | {"method": method}
            yield Case("jacobian_rate", (q, qd), chosen_way, rate, scale=reach * fast)
        yield Case("frame_velocity", (q, qd), option, oracle.frame_velocity(*view))
        for kind in ("classical", "spatial"):
            a = oracle.frame_acceleration(*view, kind)
            yield Case("frame_acceleration", (q, qd, qdd), option | {"kind": kind}, a)
        classical = oracle.frame_acceleration(*view, "classical")
        both = np.stack([oracle.frame_velocity(*view), classical])
        for method in methods.get("frame_motion", ("fastest",)):
            yield Case("frame_motion", (q, qd, qdd), option | {"method": method}, both)
    f_ext = {name: rng.normal(size=6) for name in chosen}
    for function, arrays in (
        ("inverse_dynamics", (q, qd, qdd)),
        ("forward_dynamics", (q, qd, tau)),
        ("joint_reactions", (q, qd, qdd)),
    ):
        for forces in ({}, {"f_ext": f_ext}):
            expected = getattr(oracle, function)(*arrays, **forces)
            for method in methods.get(function, ()):
                yield Case(function, arrays, forces | {"method": method}, expected)
            if function not in methods:
                yield Case(function, arrays, forces, expected)
    for function in ("mass_matrix", "mass_matrix_inverse"):
        expected = getattr(oracle, function)(q)
        for option in [{"method": name} for name in methods.get(function, ())] or [{}]:
            yield Case(function, (q,), option, expected)
    for function, arrays in (
        ("bias_forces", (q, qd)),
        ("gravity_forces", (q,)),
        ("kinetic_energy", (q, qd)),
        ("potential_energy", (q,)),
        ("center_of_mass", (q,)),
        ("momentum", (q, qd)),
        ("centroidal_momentum_matrix", (q,)),
    ):
        yield Case(function, arrays, {}, getattr(oracle, function)(*arrays))
    yield Case("momentum", (q, qd), {"at": "world"}, oracle.momentum_at_world(q, qd))
    C = oracle.coriolis_matrix(q, qd)
    size = float(np.max(np.abs(oracle.mass_matrix(q)))) * fast  # scale: C is zero for parallel axes
    twice, force = C + C.T, C @ qd
    yield Case("coriolis_matrix", (q, qd), {}, twice, size, lambda C: C + C.T, "C + C'")
    yield Case("coriolis_matrix", (q, qd), {}, force, size * fast, lambda C: C @ qd, "C qd")
    moved = oracle.numbers(oracle.integrate(q, qd))
    yield Case("integrate", (q, qd), {}, moved, of=lambda p: oracle.numbers(oracle.position(p)))
    q1 = np.array(direct(robot.model, "integrate", q, tau))  # rotations are below pi
    yield Case("difference", (q, q1), {}, oracle.difference(q, q1))


def _spread(names: Sequence[str], count: int) -> Sequence[str]:
    """Return about `count` of the names, evenly spaced, beginning with the last one."""
    return names[:: -max(1, len(names) // count)]


def worst_errors(questions: Iterable[Case], run: Callable[..., Any]) -> dict[str, float]:
    """Return the largest relative error of each function.

    `run(function, *arrays, **options)` calls the function of chasles.
    """
    worst: dict[str, float] = {}
    for case in questions:
        answer = case.of(run(case.function, *case.arrays, **case.options))
        label = f"{case.function} {case.options.get('kind', case.label)}".strip()
        error = relative(answer, case.expected, case.scale)
        worst[label] = max(worst.get(label, 0.0), error)
    return worst


def allowed(label: str, condition: float) -> float:
    """Return the tolerance: 1e-9, or more if an ill-conditioned linear system is solved."""
    solves = label in ("forward_dynamics", "mass_matrix_inverse")
    return max(1e-9, 100.0 * EPS * condition) if solves else 1e-9


def condition(oracle: Oracle, robot: chasles.Robot, *, seed: int) -> float:
    """Return the condition number of Pinocchio's mass matrix at the state of `cases`."""
    M = oracle.mass_matrix(robot.random(np.random.default_rng(seed)))
    return float(np.linalg.cond(M)) if M.size else 1.0
