"""Closed mechanisms by plain products of 4x4 matrices, sharing no code with the library.

Joints move as the documentation defines. Loop closure is checked with points and axes, not with the
library's loop residual.
"""

import math

import numpy as np
from scipy.spatial.transform import Rotation as R

from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import Description, JointData, LinkData, LoopData
from chasles.robots._solids import sphere

SIZES = {
    "spherical": 4,
    "free": 7,
    "cylindrical": 2,
    "planar": 3,
    "universal": 2,
    "fixed": 0,
    "sphere_in_cylinder": 5,
    "yaw_pitch_roll": 3,
}
"""Number of coordinates by joint type; other types have one."""


def pose(X: Transform) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.array(X.R.rows, dtype=float), list(X.r)
    return T


def transform(T: np.ndarray) -> Transform:
    rows = tuple(tuple(map(float, row)) for row in T[:3, :3])
    return Transform.from_pose(Matrix(rows), Vector(tuple(map(float, T[:3, 3]))))


def shift(v: np.ndarray) -> np.ndarray:
    T = np.eye(4)
    T[:3, 3] = v
    return T


def turn(v: np.ndarray) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3] = R.from_rotvec(v).as_matrix()
    return T


def displacement(joint: JointData, q: np.ndarray) -> np.ndarray:
    """Return the displacement of a joint's child at q; planar joints translate in x and y."""
    u = np.array(list(joint.axis), dtype=float)
    match joint.kind:
        case "fixed":
            return np.eye(4)
        case "revolute" | "continuous":
            return turn(u * q[0])
        case "prismatic":
            return shift(u * q[0])
        case "helical":
            return shift(u * joint.pitch * q[0]) @ turn(u * q[0])
        case "cylindrical":
            return shift(u * q[1]) @ turn(u * q[0])
        case "planar":
            return shift(np.array([q[1], q[2], 0.0])) @ turn(u * q[0])
        case "universal":
            return turn(u * q[0]) @ turn(np.array(list(joint.second_axis)) * q[1])
        case "rack_and_pinion":
            rack = np.array(list(joint.second_axis))
            return shift(rack * joint.radius * q[0]) @ turn(u * q[0])
        case "yaw_pitch_roll":
            x, y, z = np.eye(3)
            return turn(z * q[0]) @ turn(y * q[1]) @ turn(x * q[2])
    T = np.eye(4)
    T[:3, :3] = R.from_quat([*q[1:4], q[0]]).as_matrix()
    along = u * q[4] if joint.kind == "sphere_in_cylinder" else 0.0
    T[:3, 3] = q[4:] if joint.kind == "free" else along
    return T


def poses(source: Description, q: np.ndarray) -> dict[str | None, np.ndarray]:
    """Return the world pose of every link; in the description, parents precede children."""
    placed: dict[str | None, np.ndarray] = {None: np.eye(4), source.links[0].name: np.eye(4)}
    first = 0
    for joint in source.joints:
        count = SIZES.get(joint.kind, 1)
        moved = displacement(joint, q[first : first + count])
        placed[joint.child] = placed[joint.parent] @ pose(joint.pose) @ moved
        first += count
    return placed


def gap(source: Description, loop: LoopData, q: np.ndarray) -> float:
    """Return the closure error of a loop joint, as distances of points and sines of angles."""
    placed = poses(source, q)
    P = placed[loop.parent] @ pose(loop.pose)
    S = placed[loop.child] @ pose(loop.child_pose)
    u = np.array(list(loop.axis), dtype=float)
    axis_P, axis_S = P[:3, :3] @ u, S[:3, :3] @ u
    d = S[:3, 3] - P[:3, 3]
    across = d - axis_P * (axis_P @ d)
    apart = axis_P - axis_S
    turned = P[:3, :3].T @ S[:3, :3]
    match loop.kind:
        case "fixed":
            left = [d, turned - np.eye(3)]
        case "revolute" | "continuous":
            left = [d, apart]
        case "prismatic":
            left = [across, turned - np.eye(3)]
        case "helical":
            left = [across, turned - turn(u * (axis_P @ d) / loop.pitch)[:3, :3]]
        case "cylindrical":
            left = [across, apart]
        case "planar":
            left = [np.atleast_1d(axis_P @ d), apart]
        case "universal":
            second = S[:3, :3] @ np.array(list(loop.second_axis))
            left = [d, np.atleast_1d(axis_P @ second)]
        case "rack_and_pinion":
            rack = P[:3, :3] @ np.array(list(loop.second_axis))
            travel = turn(u * (rack @ d) / loop.radius)[:3, :3]
            left = [d - rack * (rack @ d), loop.radius * (turned - travel)]
        case "spherical" | "yaw_pitch_roll":
            left = [d]
        case "sphere_in_cylinder":
            left = [across]
        case _:
            left = []
    return max((float(np.max(np.abs(part))) for part in left), default=0.0)


# A mechanism in space ----------------------------------------------------------------------------

BRANCHES = (("revolute", "universal", "helical"), ("prismatic", "spherical", "planar"))
"""Two chains on one base with 11 degrees of freedom in total; a loop joint connects their tips."""


def unit(rng: np.random.Generator) -> np.ndarray:
    v = rng.normal(size=3)
    return v / np.linalg.norm(v)


def axes(kind: str, rng: np.random.Generator) -> dict[str, Vector]:
    """Return random axes for a joint; a planar joint keeps z as its axis."""
    u = np.array([0.0, 0.0, 1.0]) if kind == "planar" else unit(rng)
    second = np.cross(u, unit(rng))
    found = {"axis": Vector(tuple(u.tolist()))}
    if kind in ("universal", "rack_and_pinion"):
        found["second_axis"] = Vector(tuple((second / np.linalg.norm(second)).tolist()))
    return found


def spatial(kind: str, seed: int, *, floating: bool = False) -> tuple[Description, np.ndarray]:
    """Return two chains closed by a loop joint of the given type, and a q that closes the loop."""
    rng = np.random.default_rng(seed)

    def place() -> np.ndarray:
        return shift(rng.uniform(-0.5, 0.5, 3)) @ turn(rng.uniform(-2.0, 2.0, 3))

    body = sphere(1.0, 0.1)
    links, joints = [LinkData("base", body)], []
    if floating:
        links.insert(0, LinkData("ground", RigidInertia.zero()))
        joints.append(JointData("float", "free", "ground", "base"))
    for branch in BRANCHES:
        parent = "base"
        for each in branch:
            pitch = 0.2 if each == "helical" else 0.0
            more = {"pose": transform(place()), "pitch": pitch} | axes(each, rng)
            joints.append(JointData(each, each, parent, f"{each}_link", **more))
            links.append(LinkData(f"{each}_link", body))
            parent = f"{each}_link"
    source = Description("spatial", tuple(links), tuple(joints))
    q = np.concatenate([_coordinates(joint.kind, rng) for joint in joints])
    loop = LoopData(
        "loop",
        kind,
        "helical_link",
        "planar_link",
        transform(place()),
        pitch=0.3 if kind == "helical" else 0.0,
        radius=0.3,
        **axes(kind, rng),
    )
    placed = poses(source, q)
    made = displacement(loop, _coordinates(kind, rng))
    S = np.linalg.inv(placed["planar_link"]) @ placed["helical_link"] @ pose(loop.pose) @ made
    closed = LoopData(**{**vars(loop), "child_pose": transform(S)})
    return Description("spatial", tuple(links), tuple(joints), loops=(closed,)), q


def _coordinates(kind: str, rng: np.random.Generator) -> np.ndarray:
    q = rng.uniform(-1.0, 1.0, SIZES.get(kind, 1))
    if kind in ("spherical", "free", "sphere_in_cylinder"):
        q[:4] /= np.linalg.norm(q[:4])
    return q


# Planar mechanisms in closed form ----------------------------------------------------------------


def slider(l1: float, l2: float, angle: float, side: float = 1.0) -> tuple[float, float, float]:
    """Return alpha2, alpha3 and a of a slider crank; with side -1 the rod points to the left."""
    lean = math.asin(-l1 * math.sin(angle) / l2)
    lean = lean if side > 0 else math.pi - lean
    return lean - angle, -lean, l1 * math.cos(angle) + l2 * math.cos(lean)


def rockers(bars: tuple[float, float, float, float], angle: float) -> list[float]:
    """Return the two rocker angles of a four-bar (up, down) by Freudenstein's equation."""
    ground, crank, coupler, rocker = bars
    k1, k2 = ground / crank, ground / rocker
    k3 = (crank**2 - coupler**2 + rocker**2 + ground**2) / (2.0 * crank * rocker)
    c, s = math.cos(angle), math.sin(angle)
    A, B, C = c - k1 - k2 * c + k3, -2.0 * s, k1 - (k2 + 1.0) * c + k3
    root = math.sqrt(B * B - 4.0 * A * C)
    return [2.0 * math.atan2(-B + sign * root, 2.0 * A) for sign in (-1.0, 1.0)]
