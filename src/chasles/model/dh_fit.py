"""Compute the Denavit-Hartenberg table of a serial arm.

The tool pose of an arm is a product of screw displacements, alternately along the joint axes (Z =
Rz Tz) and along their common normals (X = Rx Tx): base X0 Z1 X1 Z2 ... Zn Xn tool. A modified row
is X(i-1) Z(i), and a standard row is Z(i) X(i), so both conventions have the same frames. Frame i
is on axis i, and its x axis meets axis i+1 at a right angle. Lengths are in m, angles in rad.
"""

import math
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from chasles.errors import ModelError
from chasles.model.denavit_hartenberg import (
    Convention,
    DHRow,
    DHTable,
    Factors,
    factors,
    matrix,
    transform,
)
from chasles.model.description import spelled
from chasles.model.dh_fields import Pose
from chasles.model.model import WORLD, Body, Model

_ROUNDING = 1e-12
"""Tolerance (rad or m) below which a deviation counts as a rounding error."""

_EXACT = 1e-13
"""Tolerance within which lengths are rounded to zero and angles to right angles."""

_NEARLY_PARALLEL = 1e-6
"""Angle (rad) below which nonparallel axes have no usable common normal."""


class OnAxis(NamedTuple):
    """Pose relative to another frame: rotation about its z axis and translation along it."""

    angle: float
    height: float

    @property
    def pose(self) -> np.ndarray:
        T = np.eye(4)
        c, s = math.cos(self.angle), math.sin(self.angle)
        T[:2, :2], T[2, 3] = ((c, -s), (s, c)), self.height
        return T


def dh_table(model: Model, convention: Convention, tool: str | None = None) -> DHTable:
    """Return the Denavit-Hartenberg table of a serial arm.

    The table describes an arm with the same coordinates, motion and masses. Link frames that
    satisfy the convention are kept. Otherwise, frames follow the rules of Balafoutis and Patel
    (1991, section 2.3). The origin is where the common normal meets the joint axis, and the x axis
    is along the normal (along z(i) x z(i+1) where axes intersect). For parallel axes, the normal
    nearest to the previous origin is used. Fixed links are omitted. `tool` is the frame at the end
    of the table (default: the robot's last frame on the last link).
    """
    bodies, tip = _serial(model), _tip(model, tool)
    P = [matrix(body.joint.placement) for body in bodies]
    standard = convention == "standard"
    base = _base(model, P[0], standard=standard)
    kept = all(_fits(factors(p)) for p in P[1:])
    start = OnAxis(0.0, 0.0) if base is None else _start(base, P[0])
    on = [OnAxis(0.0, 0.0)] * len(P) if kept else _fitted(bodies, P, tip, start, standard=standard)
    F = [P[0] @ on[0].pose if base is None else base, *(frame.pose for frame in on)]
    steps = [factors(_inverse(A) @ p @ B) for (A, B), p in zip(pairwise(F), P, strict=True)]
    end = _end(model, F[-1], tip) if standard else _NO_STEP
    X = [*steps, end][1:] if standard else steps
    rows = [
        _row(body, step, x, frame, standard=standard)
        for body, step, x, frame in zip(bodies, steps, X, F[1:], strict=True)
    ]
    last = F[-1] @ matrix(rows[-1].far) if standard else F[-1]
    gravity, tool_pose = tuple(map(float, model.gravity_vector)), _pose(_inverse(last) @ tip)
    return DHTable(tuple(rows), convention, model.name, gravity, _pose(F[0]), tool_pose)


_NO_STEP = Factors(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


# Serial arm ------------------------------------------------------------------------------------


def _serial(model: Model) -> tuple[Body, ...]:
    """Return the bodies of a serial arm. Raise an error if a table cannot represent the robot."""
    for loop in model.loops:
        raise _refused("E-DH-008", loop.name, "it closes a loop")
    for coupling in model.couplings:
        raise _refused("E-DH-009", coupling.name, "it couples joints")
    for rotor in model.rotors:
        raise _refused("E-DH-220", rotor.name, "several joints drive it")
    for before, body in enumerate(model.bodies, start=WORLD):
        if "DH" not in body.joint.names:
            problem = f"the joint type is {body.joint.kind}, not {' or '.join(spelled('DH'))}"
            remedy = (
                "replace it by supported joints in series (Featherstone 2008, section 4.3), lock it"
            )
            part = f"joint {body.data.name!r}"
            raise ModelError("E-DH-010", problem, f"{remedy} or use `subtree`", part=part)
        if body.follow is not None:
            raise _refused("E-DH-011", body.data.name, "it mimics another joint")
        if body.drive is not None:
            raise _refused("E-DH-012", body.data.name, "its motion is prescribed")
        if body.parent != before:
            raise _refused("E-DH-013", body.data.name, "the arm branches at this joint")
    if not model.bodies:
        problem = f"robot {model.name!r} has no moving joint"
        raise ModelError("E-DH-014", problem, "add a revolute or prismatic joint")
    return model.bodies


def _refused(code: str, joint: str, problem: str) -> ModelError:
    problem += "; a Denavit-Hartenberg table describes a serial arm of independent joints"
    remedy = "lock the joint, or select a serial arm with `subtree`"
    return ModelError(code, problem, remedy, part=f"joint {joint!r}")


def _tip(model: Model, tool: str | None) -> np.ndarray:
    """Return the pose of the tool frame relative to the last body."""
    last = len(model.bodies) - 1
    if tool is None:
        tool = [name for name, frame in model.frames.items() if frame.body == last][-1]
    frame = model.frame(tool)
    if frame.body != last:
        problem = f"frame {tool!r} does not move with the last link {model.bodies[last].name!r}"
        raise ModelError("E-DH-015", problem, "name a frame on the last link")
    return matrix(frame.placement)


# Frames ----------------------------------------------------------------------------------------


def _base(model: Model, first: np.ndarray, *, standard: bool) -> np.ndarray | None:
    """Return the pose of frame 0, or None if the first row fits neither candidate.

    The candidates are the frame of the base link and the world frame, in this order.
    """
    link = model.bodies[0].data.parent
    for T in (np.eye(4) if link is None else matrix(model.frames[link].placement), np.eye(4)):
        f = factors(_inverse(T) @ first)
        if _fits(f) and not (standard and max(abs(f.a), abs(f.alpha)) > _ROUNDING):
            return T
    return None


def _fits(f: Factors) -> bool:
    """Return True if a pose is a screw displacement along x followed by one along z.

    The x axis of the first frame and the z axis of the last frame then meet at a right angle.
    """
    return max(abs(f.tilt), abs(f.across) / max(1.0, abs(f.d))) < _ROUNDING


def _start(frame: np.ndarray, placement: np.ndarray) -> OnAxis:
    """Return the frame on the next joint axis for theta = d = 0, relative to the next body."""
    f = factors(_inverse(frame) @ placement)
    return OnAxis(-f.theta, -f.d)


def _fitted(
    bodies: tuple[Body, ...],
    P: list[np.ndarray],
    tip: np.ndarray,
    start: OnAxis,
    *,
    standard: bool,
) -> list[OnAxis]:
    """Return a Denavit-Hartenberg frame on every joint axis.

    `P` contains the pose of each joint in the previous body. `start` is the frame on the first axis
    for theta = d = 0.
    """
    found = []
    for (body, after), ahead in zip(pairwise(bodies), P[1:], strict=True):
        if _ROUNDING < _sine(ahead) < _NEARLY_PARALLEL:
            angle, before = f"{_sine(ahead):.1e} rad", f"joint {body.data.name!r}"
            problem = f"the axis is nearly, but not exactly, parallel to that of {before} ({angle})"
            remedy = "make the two axes parallel (for files: load with snap=True)"
            raise ModelError("E-DH-016", problem, remedy, part=f"joint {after.data.name!r}")
        found.append(_meeting(start, ahead))
        start = _start(found[-1].pose, ahead)
    return [*found, _last(start, tip, standard=standard)]


def _sine(ahead: np.ndarray) -> float:
    """Return the sine of the angle between the z axes of two frames with this relative pose."""
    return math.hypot(ahead[0, 2], ahead[1, 2])


def _meeting(start: OnAxis, ahead: np.ndarray) -> OnAxis:
    """Return the frame on the z axis whose x axis meets the next z axis at a right angle."""
    (px, py, pz), (zx, zy, zz), sine = ahead[:3, 3], ahead[:3, 2], _sine(ahead)
    if sine <= _ROUNDING:
        coincide = math.hypot(px, py) <= _ROUNDING * max(1.0, abs(pz))
        return OnAxis(start.angle if coincide else math.atan2(py, px), start.height)
    along = (px * zx + py * zy) / (sine * sine)
    reach = (py * zx - px * zy) / sine
    side = -1.0 if reach < -_ROUNDING * max(1.0, abs(px), abs(py)) else 1.0
    return OnAxis(math.atan2(side * zx, -side * zy), pz - along * zz)


def _last(start: OnAxis, tip: np.ndarray, *, standard: bool) -> OnAxis:
    """Return the frame on the last joint axis.

    The frame coincides with the tool frame if the tool is on the axis. Otherwise, in the standard
    convention, the frame's x axis meets the tool's z axis.
    """
    f = factors(tip)
    if _fits(f) and max(abs(f.a), abs(f.alpha)) < _ROUNDING:
        return OnAxis(f.theta, f.d)
    usable = not _ROUNDING < _sine(tip) < _NEARLY_PARALLEL
    return _meeting(start, tip) if standard and usable else start


def _end(model: Model, frame: np.ndarray, tip: np.ndarray) -> Factors:
    """Return the last row's screw displacement along x, which ends at frame dh<n> or the tool."""
    n = len(model.bodies)
    known = model.frames.get(f"dh{n}")
    ends = [matrix(known.placement)] if known is not None and known.body == n - 1 else []
    steps = (factors(_inverse(frame) @ T) for T in (*ends, tip))
    return next((step for step in steps if _fits(step)), _NO_STEP)


# Rows ------------------------------------------------------------------------------------------


def _row(body: Body, Z: Factors, X: Factors, frame: np.ndarray, *, standard: bool) -> DHRow:
    """Return a joint's row in the DH table, with the link's inertia in the DH frame of the row."""
    data, bounds = body.data, body.data.limits
    try:
        constants = _angle(Z.theta), _length(Z.d), _length(X.a), _angle(X.alpha)
        same = {key: getattr(data, key) for key in ("armature", "damping", "friction", "name")}
        same |= {"pitch": data.pitch} if "pitch" in data.traits.data else {}
        if body.joint.nq == 1:
            same |= {"velocity": bounds.velocity, "effort": bounds.effort}
            same |= {"limits": (bounds.lower, bounds.upper)}
        link = "" if _reserved(body.name) else body.name
        row = DHRow(*constants, body.joint.kind, **same, link=link)
        T = frame @ matrix(row.far) if standard else frame
        moved = transform(_pose(T)) @ body.inertia
        m, c, I = moved.about_center()
        digits = 14 - math.floor(math.log10(max(*map(abs, moved.I), 1e-100)))
        moments = tuple(round(x, digits) + 0.0 for x in I)
        return replace(row, mass=m, center=tuple(map(_length, c)), inertia=moments)
    except ModelError as error:
        raise error.within(f"joint {data.name!r}") from None


def _reserved(link: str) -> bool:
    """Return True if the link name is a standard frame name in Denavit-Hartenberg tables."""
    return link in ("base", "tool") or (link.startswith("dh") and link[2:].isdigit())


def _angle(x: float) -> float:
    """Round an angle that is near a multiple of pi/2 to that multiple; -pi becomes pi."""
    quarters = round(x / (math.pi / 2.0))
    if abs(x - quarters * (math.pi / 2.0)) < _EXACT:
        return (2 if quarters == -2 else quarters) * (math.pi / 2.0)
    return x


def _length(x: float) -> float:
    """Round a length to 15 decimals, so that rounding errors do not make equal lengths differ."""
    return 0.0 if abs(x) < _EXACT else round(x, 15)


def _pose(T: np.ndarray) -> Pose:
    """Return a pose as a tuple of rows, with entries near 0 and +-1 made exact."""
    near = np.round(T)
    neat = np.where((np.abs(T - near) < _EXACT) & (np.abs(near) <= 1.0), near + 0.0, T)
    return tuple(map(tuple, neat.tolist()))


def _inverse(T: np.ndarray) -> np.ndarray:
    out = np.eye(4)
    out[:3, :3] = T[:3, :3].T
    out[:3, 3] = -T[:3, :3].T @ T[:3, 3]
    return out
