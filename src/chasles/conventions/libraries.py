"""Convert robot states, forces and matrices to the conventions of Pinocchio, MuJoCo and Drake.

All conversions are derived from `chasles.model.JOINTS`, which lists the coordinates of each joint
type in each library.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from chasles.conventions.poses import matrix, stacked, swap, unit
from chasles.errors import ModelError
from chasles.functions.doors import numbers
from chasles.mathematics.spatial import Transform
from chasles.model import JOINTS, WORLD
from chasles.model.joints import Numbers
from chasles.robot import Array, Robot

_OF_ANGLE = {"cos": "angle", "sin": "angle"}

Words = list[tuple[str, str]]
"""Joint name and coordinate name, such as "qw", for each entry of a vector."""


def _library(name: str) -> dict[str, Numbers]:
    rows = ((kind, joint.elsewhere.get(name)) for kind, joint in JOINTS.items())
    return {kind: row for kind, row in rows if isinstance(row, Numbers)}


LIBRARIES = {name: _library(name) for name in ("Pinocchio", "MuJoCo", "Drake")}
"""Coordinate conventions of each library, by joint type."""

LINEAR_FIRST = ("Pinocchio",)
"""Libraries in which the linear part of twists, wrenches and Jacobians comes first."""

FREE_IN_WORLD = ("MuJoCo",)
"""Libraries in which the pose of a free joint is relative to the world."""

# Conversion -----------------------------------------------------------------------------------


class _Turn(NamedTuple):
    """Indices of joint velocities that a library expresses in the axes of the parent body.

    - attitude: indices of the quaternion (or angle) in q.
    - spin: indices of the angular velocity in qd.
    - here, there: indices of the velocity components in qd and in the library's velocity vector,
      respectively (two for a planar joint, otherwise three).
    """

    attitude: list[int]
    spin: list[int]
    here: list[int]
    there: list[int]

    def rotation(self, q: np.ndarray) -> np.ndarray:
        """Return the rotation matrix from body to parent axes: 3x3, or 2x2 for a planar joint."""
        turn = q[..., self.attitude]
        if turn.shape[-1] == 4:
            return matrix(turn)
        c, s = np.cos(turn[..., 0]), np.sin(turn[..., 0])
        return stacked([[c, -s], [s, c]])

    def drift(self, qd: np.ndarray) -> np.ndarray:
        """Return the acceleration term w x v due to the rotation of the body axes."""
        w, v = qd[..., self.spin], qd[..., self.here]
        if w.shape[-1] == 3:
            return np.cross(w, v)
        return w * np.stack([-v[..., 1], v[..., 0]], axis=-1)


@dataclass(frozen=True, eq=False)
class Convention:
    """Conversion of a robot's quantities to another library (`to_...`) and back (`from_...`).

    `library` is the name of the library. `joints` contains the names of the joints in chasles, in
    the library's order. `nq` and `nv` are the dimensions in the library. Methods `to_...` take the
    chasles state (q, qd, qdd) first, and methods `from_...` take the library's state (x, v, a).
    Arrays may have leading batch dimensions. Both models must describe the same mechanism with the
    same link frames.

    The library's velocities are T qd, where T is an orthogonal matrix. Generalized forces convert
    as T tau, Jacobians as J T', and mass matrices as T M T'.
    """

    library: str
    joints: tuple[str, ...]
    nq: int
    nv: int
    _nq_here: int
    _places: np.ndarray  # Index in q of each entry of the library's positions.
    _cosines: list[int]  # Indices of cosines in the library's positions.
    _sines: list[int]
    _quaternions: Mapping[str, list[int]]  # Quaternion indices of each joint.
    _order: np.ndarray  # Index in qd of each entry of the library's velocities.
    _turns: tuple[_Turn, ...]

    def to_position(self, q: Array) -> np.ndarray:
        """Convert joint positions to the library's positions.

        Parameters
        ----------
        q : array_like, shape (..., robot.nq)
            Joint positions.

        Returns
        -------
        x : ndarray, shape (..., nq)
            Positions in the library's convention, with unit quaternions.

        Raises
        ------
        InputError
            If `q` does not have robot.nq entries along its last axis, or if a quaternion is zero.
        ArgumentError
            If an argument is not an array of real numbers.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.quadruped()
        >>> chasles.conventions.pinocchio(robot).to_position(robot.neutral())[:7]
        array([0., 0., 0., 0., 0., 0., 1.])
        """
        x = numbers("q", q, self._nq_here)[..., self._places]
        x[..., self._cosines] = np.cos(x[..., self._cosines])
        x[..., self._sines] = np.sin(x[..., self._sines])
        for joint, places in self._quaternions.items():
            x[..., places] = unit(f"joint {joint!r}", x[..., places])
        return x

    def from_position(self, x: Array) -> np.ndarray:
        """Convert the library's positions to joint positions.

        Parameters
        ----------
        x : array_like, shape (..., nq)
            Positions in the library's convention.

        Returns
        -------
        q : ndarray, shape (..., robot.nq)
            Joint positions. Angles computed from a cosine and a sine are in [-pi, pi].

        Raises
        ------
        InputError
            If the last axis of an array does not have the documented size.
        ArgumentError
            If an argument is not an array of real numbers.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.quadruped()
        >>> mujoco = chasles.conventions.mujoco(robot)
        >>> q = robot.neutral()
        >>> bool((mujoco.from_position(mujoco.to_position(q)) == q).all())
        True
        """
        x = numbers("x", x, self.nq)
        q = np.empty((*x.shape[:-1], self._nq_here), x.dtype)
        q[..., self._places] = x
        angles = np.arctan2(x[..., self._sines], x[..., self._cosines])
        q[..., self._places[self._cosines]] = angles
        return q

    def to_velocity(self, q: Array, qd: Array) -> np.ndarray:
        """Convert joint velocities to the library's velocities.

        Parameters
        ----------
        q : array_like, shape (..., robot.nq)
            Joint positions.
        qd : array_like, shape (..., nv)
            Joint velocities.

        Returns
        -------
        v : ndarray, shape (..., nv)
            Velocities in the library's convention.

        Raises
        ------
        InputError
            If the last axis of an array does not have the documented size.
        ArgumentError
            If an argument is not an array of real numbers.

        Examples
        --------
        >>> import numpy as np
        >>> import chasles
        >>> robot = chasles.robots.quadruped()
        >>> qd = np.arange(robot.nv, dtype=float)
        >>> chasles.conventions.pinocchio(robot).to_velocity(robot.neutral(), qd)[:6]
        array([3., 4., 5., 0., 1., 2.])
        """
        return self._there(numbers("q", q, self._nq_here), numbers("qd", qd, self.nv))

    def from_velocity(self, x: Array, v: Array) -> np.ndarray:
        """Convert the library's velocities to joint velocities.

        Parameters
        ----------
        x : array_like, shape (..., nq)
            Positions in the library's convention.
        v : array_like, shape (..., nv)
            Velocities in the library's convention.

        Returns
        -------
        qd : ndarray, shape (..., nv)
            Joint velocities.

        Raises
        ------
        InputError
            If the last axis of an array does not have the documented size.
        ArgumentError
            If an argument is not an array of real numbers.

        Examples
        --------
        >>> import numpy as np
        >>> import chasles
        >>> robot = chasles.robots.quadruped()
        >>> pinocchio = chasles.conventions.pinocchio(robot)
        >>> pinocchio.from_velocity(pinocchio.to_position(robot.neutral()), np.arange(18.0))[:6]
        array([3., 4., 5., 0., 1., 2.])
        """
        return self._here(self.from_position(x), numbers("v", v, self.nv))

    def to_acceleration(self, q: Array, qd: Array, qdd: Array) -> np.ndarray:
        """Convert joint accelerations to the library's accelerations.

        Parameters
        ----------
        q : array_like, shape (..., robot.nq)
            Joint positions.
        qd, qdd : array_like, shape (..., nv)
            Joint velocities and accelerations.

        Returns
        -------
        a : ndarray, shape (..., nv)
            Accelerations in the library's convention (time derivatives of its velocities).

        Raises
        ------
        InputError
            If the last axis of an array does not have the documented size.
        ArgumentError
            If an argument is not an array of real numbers.

        Examples
        --------
        >>> import numpy as np
        >>> import chasles
        >>> robot = chasles.robots.quadruped()
        >>> mujoco = chasles.conventions.mujoco(robot)
        >>> mujoco.to_acceleration(robot.neutral(), np.ones(18), np.zeros(18))[:6]
        array([0., 0., 0., 0., 0., 0.])
        """
        qd, qdd = numbers("qd", qd, self.nv), numbers("qdd", qdd, self.nv)
        return self._there(numbers("q", q, self._nq_here), qdd + self._drift(qd))

    def from_acceleration(self, x: Array, v: Array, a: Array) -> np.ndarray:
        """Convert the library's accelerations to joint accelerations.

        Parameters
        ----------
        x : array_like, shape (..., nq)
            Positions in the library's convention.
        v, a : array_like, shape (..., nv)
            Velocities and accelerations in the library's convention.

        Returns
        -------
        qdd : ndarray, shape (..., nv)
            Joint accelerations.

        Raises
        ------
        InputError
            If the last axis of an array does not have the documented size.
        ArgumentError
            If an argument is not an array of real numbers.

        Examples
        --------
        >>> import numpy as np
        >>> import chasles
        >>> robot = chasles.robots.quadruped()
        >>> mujoco = chasles.conventions.mujoco(robot)
        >>> x = mujoco.to_position(robot.neutral())
        >>> mujoco.from_acceleration(x, np.zeros(18), np.ones(18))[:6]
        array([1., 1., 1., 1., 1., 1.])
        """
        qd = self.from_velocity(x, v)
        return self._here(self.from_position(x), numbers("a", a, self.nv)) - self._drift(qd)

    def to_effort(self, q: Array, tau: Array) -> np.ndarray:
        """Convert joint torques to the library's coordinates, preserving power.

        Parameters
        ----------
        q : array_like, shape (..., robot.nq)
            Joint positions.
        tau : array_like, shape (..., nv)
            Joint torques (N m or N).

        Returns
        -------
        tau : ndarray, shape (..., nv)
            Joint torques in the library's convention.

        Raises
        ------
        InputError
            If the last axis of an array does not have the documented size.
        ArgumentError
            If an argument is not an array of real numbers.

        Examples
        --------
        >>> import numpy as np
        >>> import chasles
        >>> robot = chasles.robots.quadruped()
        >>> chasles.conventions.pinocchio(robot).to_effort(robot.neutral(), np.arange(18.0))[:6]
        array([3., 4., 5., 0., 1., 2.])
        """
        return self._there(numbers("q", q, self._nq_here), numbers("tau", tau, self.nv))

    def from_effort(self, x: Array, tau: Array) -> np.ndarray:
        """Convert the library's joint torques to chasles coordinates.

        Parameters
        ----------
        x : array_like, shape (..., nq)
            Positions in the library's convention.
        tau : array_like, shape (..., nv)
            Joint torques in the library's convention.

        Returns
        -------
        tau : ndarray, shape (..., nv)
            Joint torques (N m or N).

        Raises
        ------
        InputError
            If the last axis of an array does not have the documented size.
        ArgumentError
            If an argument is not an array of real numbers.

        Examples
        --------
        >>> import numpy as np
        >>> import chasles
        >>> robot = chasles.robots.quadruped()
        >>> pinocchio = chasles.conventions.pinocchio(robot)
        >>> pinocchio.from_effort(pinocchio.to_position(robot.neutral()), np.arange(18.0))[:6]
        array([3., 4., 5., 0., 1., 2.])
        """
        return self._here(self.from_position(x), numbers("tau", tau, self.nv))

    def to_jacobian(self, q: Array, J: Array) -> np.ndarray:
        """Convert a Jacobian to the library's velocity coordinates and row order.

        The centroidal momentum matrix can be converted in the same way.

        Parameters
        ----------
        q : array_like, shape (..., robot.nq)
            Joint positions.
        J : array_like, shape (..., 6, nv)
            Jacobian, angular rows first.

        Returns
        -------
        J : ndarray, shape (..., 6, nv)
            Jacobian in the library's convention.

        Raises
        ------
        InputError
            If the last axis of an array does not have the documented size, or if J does not have
            six rows.
        ArgumentError
            If an argument is not an array of real numbers.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.planar(2)
        >>> J = robot.jacobian([0.0, 0.0], frame="tip")
        >>> chasles.conventions.pinocchio(robot).to_jacobian([0.0, 0.0], J)[2]
        array([2., 1.])
        """
        q = numbers("q", q, self._nq_here)[..., None, :]
        return self.spatial(self._there(q, numbers("J", J, self.nv)), axis=-2)

    def from_jacobian(self, x: Array, J: Array) -> np.ndarray:
        """Convert the library's Jacobian to the chasles convention, with angular rows first.

        Parameters
        ----------
        x : array_like, shape (..., nq)
            Positions in the library's convention.
        J : array_like, shape (..., 6, nv)
            Jacobian in the library's convention.

        Returns
        -------
        J : ndarray, shape (..., 6, nv)
            Jacobian.

        Raises
        ------
        InputError
            If the last axis of an array does not have the documented size, or if J does not have
            six rows.
        ArgumentError
            If an argument is not an array of real numbers.

        Examples
        --------
        >>> import numpy as np
        >>> import chasles
        >>> pinocchio = chasles.conventions.pinocchio(chasles.robots.planar(2))
        >>> pinocchio.from_jacobian([0.0, 0.0], np.eye(6, 2))[3]
        array([1., 0.])
        """
        q = self.from_position(x)[..., None, :]
        return self.spatial(self._here(q, numbers("J", J, self.nv)), axis=-2)

    def to_mass_matrix(self, q: Array, M: Array) -> np.ndarray:
        """Convert a mass matrix, or its inverse, to the library's coordinates.

        Parameters
        ----------
        q : array_like, shape (..., robot.nq)
            Joint positions.
        M : array_like, shape (..., nv, nv)
            Mass matrix (kg m2 or kg).

        Returns
        -------
        M : ndarray, shape (..., nv, nv)
            Mass matrix in the library's convention.

        Raises
        ------
        InputError
            If the last axis of an array does not have the documented size.
        ArgumentError
            If an argument is not an array of real numbers.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.quadruped()
        >>> q = robot.neutral()
        >>> M = chasles.conventions.pinocchio(robot).to_mass_matrix(q, robot.mass_matrix(q))
        >>> round(float(M[0, 0]), 3)
        18.64
        """
        q = numbers("q", q, self._nq_here)[..., None, :]
        half = self._there(q, numbers("M", M, self.nv)).swapaxes(-1, -2)
        return self._there(q, half).swapaxes(-1, -2)

    def from_mass_matrix(self, x: Array, M: Array) -> np.ndarray:
        """Convert the library's mass matrix, or its inverse, to chasles coordinates.

        Parameters
        ----------
        x : array_like, shape (..., nq)
            Positions in the library's convention.
        M : array_like, shape (..., nv, nv)
            Mass matrix in the library's convention.

        Returns
        -------
        M : ndarray, shape (..., nv, nv)
            Mass matrix (kg m2 or kg).

        Raises
        ------
        InputError
            If the last axis of an array does not have the documented size.
        ArgumentError
            If an argument is not an array of real numbers.

        Examples
        --------
        >>> import numpy as np
        >>> import chasles
        >>> drake = chasles.conventions.drake(chasles.robots.planar(2))
        >>> drake.from_mass_matrix([0.0, 0.0], np.diag([2.0, 1.0]))
        array([[2., 0.],
               [0., 1.]])
        """
        q = self.from_position(x)[..., None, :]
        half = self._here(q, numbers("M", M, self.nv)).swapaxes(-1, -2)
        return self._here(q, half).swapaxes(-1, -2)

    def spatial(self, value: Array, *, axis: int = -1) -> np.ndarray:
        """Convert twists, wrenches or momenta to or from the library's component order.

        The angular and linear parts are swapped if the linear part comes first in the library.

        Parameters
        ----------
        value : array_like
            6-vectors, with components along `axis`.
        axis : int, optional
            Axis of the six components. Default: the last.

        Returns
        -------
        value : ndarray
            Array of the same shape, in the converted order.

        Raises
        ------
        InputError
            If `axis` does not have six entries.

        Examples
        --------
        >>> import chasles
        >>> chasles.conventions.pinocchio(chasles.robots.planar(2)).spatial([1, 2, 3, 4, 5, 6])
        array([4, 5, 6, 1, 2, 3])
        """
        return swap(value, axis=axis) if self.library in LINEAR_FIRST else np.array(value)

    def _there(self, q: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Multiply vectors along the last axis by T, which maps qd to the library's velocities."""
        out = _spread(value, q)[..., self._order]
        for turn in self._turns:
            out[..., turn.there] = _product(turn.rotation(q), value[..., turn.here])
        return out

    def _here(self, q: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Multiply vectors along the last axis by T'.

        T' is the transpose of the matrix T, which maps qd to the library's velocities.
        """
        out = np.empty_like(_spread(value, q))
        out[..., self._order] = value
        for turn in self._turns:
            back = turn.rotation(q).swapaxes(-1, -2)
            out[..., turn.here] = _product(back, value[..., turn.there])
        return out

    def _drift(self, qd: np.ndarray) -> np.ndarray:
        """Return T' (dT/dt) qd, where T maps qd to the library's velocities.

        T' is the transpose of T. This term of the acceleration conversion is zero at rest.
        """
        out = np.zeros_like(qd)
        for turn in self._turns:
            out[..., turn.here] = turn.drift(qd)
        return out


def pinocchio(robot: Robot, joints: Sequence[str] | None = None) -> Convention:
    """Return the conversion between chasles and Pinocchio for a robot.

    Parameters
    ----------
    robot : Robot
        The robot.
    joints : sequence of str, optional
        Joint names in Pinocchio's order, `list(model.names)[1:]`. Default: the joint order in
        chasles. A free joint at the root may have a different name in Pinocchio.

    Returns
    -------
    convention : Convention
        Methods `to_...` and `from_...` convert states, forces and matrices.

    Raises
    ------
    ModelError
        If Pinocchio does not support a joint type of the robot, or the names do not match.

    Notes
    -----
    Pinocchio's URDF parser represents a continuous joint by two coordinates (cosine and sine), and
    treats mimic joints as independent. If the robot has mimic joints, load it with `mimic=False`.

    Examples
    --------
    >>> import chasles
    >>> chasles.conventions.pinocchio(chasles.robots.quadruped()).nq
    19
    """
    return _convention("Pinocchio", robot, joints)


def mujoco(robot: Robot, joints: Sequence[str] | None = None) -> Convention:
    """Return the conversion between chasles and MuJoCo for a robot.

    Parameters
    ----------
    robot : Robot
        The robot.
    joints : sequence of str, optional
        Joint names in the order of `model.joint(i)`. Default: the joint order in chasles. A free
        joint at the root may have a different name in MuJoCo, or no name.

    Returns
    -------
    convention : Convention
        Methods `to_...` and `from_...` convert states, forces and matrices.

    Raises
    ------
    ModelError
        If MuJoCo does not support a joint type of the robot, or the names do not match.

    Notes
    -----
    Joint positions of a robot loaded from an MJCF file include `ref`. For other robots, chasles
    does not know MuJoCo's `ref`: add `ref` to the converted positions to obtain those of MuJoCo.

    Examples
    --------
    >>> import chasles
    >>> chasles.conventions.mujoco(chasles.robots.quadruped()).nq
    19
    """
    return _convention("MuJoCo", robot, joints)


def drake(robot: Robot, joints: Sequence[str] | None = None) -> Convention:
    """Return the conversion between chasles and Drake for a robot.

    Parameters
    ----------
    robot : Robot
        The robot.
    joints : sequence of str, optional
        Joint names in the order of `position_start()`. Default: the joint order in chasles. A
        QuaternionFloatingJoint at the root may have a different name in Drake.

    Returns
    -------
    convention : Convention
        Methods `to_...` and `from_...` convert states, forces and matrices.

    Raises
    ------
    ModelError
        If Drake does not support a joint type of the robot, or the names do not match.

    Examples
    --------
    >>> import chasles
    >>> chasles.conventions.drake(chasles.robots.quadruped()).nq
    19
    """
    return _convention("Drake", robot, joints)


def _convention(library: str, robot: Robot, joints: Sequence[str] | None) -> Convention:
    names = robot.joints if joints is None else _matched(library, robot, joints)
    x, v = _words({name: _row(library, robot, name) for name in names})
    q, qd = _words({name: robot.joint(name).traits.numbers for name in robot.joints})
    order = [qd.index((joint, word.lower())) for joint, word in v]
    turns = []
    for joint in names:
        for there in (_places(v, joint, "W"), _places(v, joint, "V")):
            attitude, spin = _places(q, joint, "qa"), _places(qd, joint, "w")
            turns.append(_Turn(attitude, spin, [order[k] for k in there], there))
    return Convention(
        library,
        names,
        len(x),
        len(v),
        len(q),
        np.array([q.index((joint, _OF_ANGLE.get(word, word))) for joint, word in x], dtype=int),
        [k for joint in names for k in _places(x, joint, "c")],
        [k for joint in names for k in _places(x, joint, "s")],
        {joint: _places(x, joint, "q") for joint in names if _places(x, joint, "q")},
        np.array(order, dtype=int),
        tuple(turn for turn in turns if turn.there),
    )


def _words(rows: Mapping[str, Numbers]) -> tuple[Words, Words]:
    """Return the names of the position and velocity coordinates of all joints, in joint order."""
    x = [(joint, word) for joint, row in rows.items() for word in row.position.split()]
    v = [(joint, word) for joint, row in rows.items() for word in row.velocity.split()]
    return x, v


def _places(words: Words, joint: str, initials: str) -> list[int]:
    """Return the indices of a joint's coordinates whose names start with one of `initials`."""
    return [k for k, (name, word) in enumerate(words) if name == joint and word[0] in initials]


def _row(library: str, robot: Robot, name: str) -> Numbers:
    """Return a joint's coordinates in a library; raise an error for an unsupported joint."""
    data, rows = robot.joint(name), LIBRARIES[library]
    at = f"joint {name!r} of robot {robot.name!r}"
    if data.reversed:
        problem = f"the library does not support reversed joints, such as {at}"
        remedy = "exchange the joint's parent and child, or lock the joint"
        raise ModelError("E-CONVENTION-001", problem, remedy, part=library)
    if data.kind not in rows:
        why = data.traits.elsewhere.get(library, f"it supports {', '.join(rows)}")
        problem = (
            f"{at} has type {data.kind}; {library} has no joint type with the same "
            f"coordinates ({why})"
        )
        remedy = "lock the joint, or replace it with joints that both libraries support"
        raise ModelError("E-CONVENTION-002", problem, remedy, part=library)
    across = data.traits.along and "x" in rows[data.kind].position.split()
    if across and tuple(data.axis) != (0.0, 0.0, 1.0):
        problem = (
            f"{at} has type {data.kind} and normal {tuple(data.axis)}, but its x and y "
            f"coordinates match those of {library} only if the normal is (0, 0, 1)"
        )
        remedy = "rotate the joint's frame so that the normal is (0, 0, 1)"
        raise ModelError("E-CONVENTION-003", problem, remedy, part=library)
    if library in FREE_IN_WORLD and data.traits.floating:
        body = next(body for body in robot.model.bodies if body.data.name == name)
        if (body.parent, body.joint.placement) != (WORLD, Transform.identity()):
            problem = f"{at} is a free joint, but its base frame is not the world frame"
            remedy = "attach the joint to the world, with its frame at the world origin"
            raise ModelError("E-CONVENTION-004", problem, remedy, part=library)
    return rows[data.kind]


def _matched(library: str, robot: Robot, joints: Sequence[str]) -> tuple[str, ...]:
    """Return the names of all joints except fixed joints, in the library's order.

    The floating base may have a different name in the library. If all other joints match, an
    unmatched free joint is taken as the base.
    """
    ours = robot.joints
    fixed = {data.name for data in robot.model.source.joints if data.kind == "fixed"}
    names = [name for name in joints if name not in fixed]
    unknown = [name for name in names if name not in ours]
    missing = [name for name in ours if name not in names]
    if len(unknown) == 1 and [robot.joint(name).traits.floating for name in missing] == [True]:
        names[names.index(unknown.pop())] = missing.pop()
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    wrong = {"not in the robot": unknown, "missing": missing, "named twice": twice}
    if any(wrong.values()):
        text = "; ".join(f"{k}: {', '.join(map(repr, v))}" for k, v in wrong.items() if v)
        followers = set(unknown) & set(robot.moving_joints)
        hint = (
            "load the robot with mimic=False to make mimic joints independent" if followers else ""
        )
        part = f"{library}: joints of robot {robot.name!r}"
        raise ModelError("E-CONVENTION-005", text, hint, part=part)
    return tuple(names)


# Arrays ---------------------------------------------------------------------------------------


def _spread(value: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Broadcast an array to the batch dimensions of q."""
    lead = np.broadcast_shapes(value.shape[:-1], q.shape[:-1])
    return np.broadcast_to(value, (*lead, value.shape[-1]))


def _product(R: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...j->...i", R, v)
