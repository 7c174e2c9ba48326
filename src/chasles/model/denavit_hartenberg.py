"""Serial arms from Denavit-Hartenberg tables.

In both conventions, a link's frame moves with its joint, and the z axis is the joint axis:

- modified (proximal): T = Rx(alpha) Tx(a) Rz(theta) Tz(d) is the pose of link i in link i-1. The
  link frame is frame i of the table (Balafoutis and Patel 1991, section 2.3.1, where a and alpha
  have the index i).
- standard (distal): T = Rz(theta) Tz(d) Tx(a) Rx(alpha). Frame i of the table is at the far end of
  link i, at Tx(a) Rx(alpha) in the link frame.

Frame i of the table is named `dh<i>`. The extended form has an additional length b along y: Tx(a)
is replaced by Tx(a) Ty(b) (Legnani et al. 1996, part II, fig. 6, where d is called s).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from chasles.errors import ModelError, shown
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.rotations import about
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model.build import compose, swept
from chasles.model.description import Description, FrameData, JointData, Limits, LinkData
from chasles.model.dh_fields import FIELDS, IDENTITY, TABLE, Pose, checked, checked_pose
from chasles.model.joints import JOINTS
from chasles.names import suggest

Convention = Literal["standard", "modified"]

TURN = 1.01 * 2.0 * math.pi
"""Largest angle (rad) of a table that is not suspected to be in degrees."""


@dataclass(frozen=True)
class DHRow:
    """A joint and the link that it moves: one row of a Denavit-Hartenberg table (m, rad, kg).

    Attributes
    ----------
    theta, d, a, alpha
        Denavit-Hartenberg parameters. The joint coordinate is added to theta (kind "revolute") or
        to d ("prismatic"). A "cylindrical" joint has two coordinates, which are added to theta and
        d. The coordinate of a "helical" joint is added to theta, and pitch (m/rad) times the
        coordinate is added to d (Featherstone 2008, section 4.3).
    b
        Length along y in the extended form (zero in the original form).
    mass, center
        Mass, and center of mass in the row's frame, which is `dh<i>` for row i.
    inertia
        Inertia tensor in the row's frame, stored as [xx, yy, zz, xy, xz, yz]. The entry xy is minus
        the integral of x y dm. [xx, yy, zz] and a 3x3 matrix are also accepted.
    inertia_about
        "center" for the center of mass, or "frame" for the frame's origin.
    limits
        Lower and upper limit of a single coordinate.
    velocity, effort
        Maximum velocity and effort.
    armature
        Rotor inertia reflected to the joint.
    damping, friction
        Viscous damping coefficient and dry friction.
    name, link
        Names of the joint and the link (default: "joint<i>" and "link<i>").
    where
        File and line of the row, for error messages.
    """

    theta: float
    d: float
    a: float
    alpha: float
    kind: str = "revolute"
    b: float = 0.0
    mass: float = 0.0
    center: Sequence[float] = (0.0, 0.0, 0.0)
    inertia: Any = (0.0,) * 6
    inertia_about: str = "center"
    limits: Sequence[float] = (-math.inf, math.inf)
    velocity: float = math.inf
    effort: float = math.inf
    armature: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    pitch: float = 0.0
    name: str = ""
    link: str = ""
    where: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        for key in FIELDS:
            object.__setattr__(self, key, checked(FIELDS, key, getattr(self, key)))
        self._check_kind()

    def _check_kind(self) -> None:
        """Raise an error for fields that do not apply to the joint type."""
        joint = JOINTS[self.kind]
        if self.pitch and "pitch" not in joint.data:
            problem = f"a {self.kind} joint has no pitch"
            raise ModelError("E-DH-340", problem, "omit `pitch`, or make the joint helical")
        bounds = {"limits": (-math.inf, math.inf), "velocity": math.inf, "effort": math.inf}
        for key, none in bounds.items():
            if joint.nq > 1 and getattr(self, key) != none:
                what = f"a {self.kind} joint with {joint.nq} coordinates"
                problem = f"`{key}` is only for joints with one coordinate, not for {what}"
                raise ModelError("E-DH-341", problem, f"omit `{key}`")

    @property
    def rigid(self) -> RigidInertia:
        """Spatial inertia of the link in the row's frame, which is `dh<i>` for row i."""
        c, I = Vector(tuple(self.center)), Symmetric(*self.inertia)
        if self.inertia_about == "frame":
            return RigidInertia(self.mass, c * self.mass, I)
        return RigidInertia.from_center(self.mass, c, I)

    @property
    def far(self) -> Transform:
        """Constant transform Tx(a) Ty(b) Rx(alpha) of the row."""
        return _exact(Transform(about(0, self.alpha), Vector.of(self.a, self.b, 0.0)))


_SAME = ("armature", "damping", "friction", "pitch", "where")
"""Fields of `DHRow` that are copied to `JointData`."""

REQUIRED = tuple(f.name for f in fields(DHRow) if f.default is MISSING)
"""Fields that every row of a Denavit-Hartenberg table must have."""


def row_of(given: Mapping[str, Any]) -> DHRow:
    """Create a `DHRow` from a mapping; raise an error for missing or unknown fields."""
    for key in given:
        if key not in FIELDS:
            raise ModelError("E-DH-001", f"unknown field {key!r}", suggest(str(key), FIELDS))
    missing = [key for key in REQUIRED if key not in given]
    if missing:
        problem = f"no {', '.join(missing)}"
        raise ModelError("E-DH-002", problem, f"give {', '.join(REQUIRED)} in every row")
    return DHRow(**given)


@dataclass(frozen=True)
class DHTable:
    """A serial arm, described by a Denavit-Hartenberg table (m, rad).

    The tool's pose in the world is base T1(q1) ... Tn(qn) tool.

    Attributes
    ----------
    rows
        `DHRow` objects, mappings of field names to values, or sequences (theta, d, a, alpha).
    convention
        "modified" or "standard".
    base
        Pose of frame 0 in the world (homogeneous 4x4 matrix).
    tool
        Pose of the tool in frame n (homogeneous 4x4 matrix).
    gravity
        Gravitational acceleration in m/s^2, along the world axes.
    """

    rows: tuple[DHRow, ...]
    convention: Convention
    name: str = "arm"
    gravity: Sequence[float] = (0.0, 0.0, -9.81)
    base: Pose = IDENTITY
    tool: Pose = IDENTITY
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)
    where: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", _rows(self.rows))
        for key in TABLE:
            object.__setattr__(self, key, checked(TABLE, key, getattr(self, key)))
        for key in ("base", "tool"):
            object.__setattr__(self, key, checked_pose(key, getattr(self, key)))

    def __str__(self) -> str:
        """Return the table as text, with the joint variables written as "q1", "q2", ..."""
        head = ("joint", "theta", "d", "a", "alpha")
        lines: list[tuple[str, ...]] = [head]
        for i, row in enumerate(self.rows, start=1):
            own = _coordinates(row, f"q{i}")
            words = (_sum(own.get(key, ""), getattr(row, key)) for key in head[1:])
            lines.append((row.name or f"joint{i}", *words))
        wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ("  ".join(map(str.ljust, line, wide)).rstrip() for line in lines)
        head_line = f"{self.name}: {self.convention} Denavit-Hartenberg (rad, m)"
        return "\n".join(map(shown, (head_line, *text)))

    @property
    def massless(self) -> bool:
        """Return True if no row has mass, inertia or armature."""
        return not any(row.mass or row.armature or any(row.inertia) for row in self.rows)

    def description(self) -> Description:
        """Return the description of the arm, with frames base, dh1, ..., dh<n>, tool.

        Returns
        -------
        description : Description
            Links, joints and frames; `chasles.Robot(description)` is the robot.

        Examples
        --------
        >>> import chasles
        >>> rows = (chasles.DHRow(theta=0.0, d=0.4, a=0.3, alpha=0.0, mass=1.0),)
        >>> len(chasles.DHTable(rows, convention="standard").description().joints)
        1
        """
        base, tips = transform(self.base), {"tool": transform(self.tool)}
        arm = dh_chain(self.name, self.rows, self.convention, base=base, tips=tips)
        notes = (*self.notes, *in_degrees(self.rows))
        arm = replace(arm, notes=notes, where=self.where, massless=self.massless)
        return replace(arm, gravity=Vector(tuple(self.gravity)))


def in_degrees(rows: Iterable[DHRow]) -> tuple[str, ...]:
    """Return notes about angles of more than a turn, which are probably in degrees."""
    found = []
    for i, row in enumerate(rows, start=1):
        angles = {"theta": row.theta, "alpha": row.alpha}
        large = [f"{name} = {x:g}" for name, x in angles.items() if abs(x) > TURN]
        if large:
            looks = "looks" if len(large) == 1 else "look"
            told = f"{' and '.join(large)} {looks} like degrees; give radians"
            found.append(f"{row.where or f'row {i}'}: {told}")
    return tuple(found)


def _coordinates(row: DHRow, q: str) -> dict[str, str]:
    """Return the names of a joint's coordinates, keyed by "theta" or "d"."""
    units = JOINTS[row.kind].units
    names = [q] if len(units) == 1 else [f"{q}[{k}]" for k in range(len(units))]
    own = {{"rad": "theta", "m": "d"}[unit]: name for unit, name in zip(units, names, strict=True)}
    return own | ({"d": f"{row.pitch:.6g} {q}"} if row.pitch else {})


def _sum(variable: str, constant: float) -> str:
    """Format the sum of a coordinate and a constant with six significant digits."""
    if not variable:
        return f"{constant:.6g}"
    return variable if constant == 0.0 else f"{variable} {constant:+.6g}"


def _rows(given: Any) -> tuple[DHRow, ...]:
    """Convert rows in any accepted form to `DHRow` objects."""
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        problem = f"`rows` must be a sequence, not {type(given).__name__}"
        raise ModelError("E-DH-003", problem, "give a sequence of rows or an (n, 4) array")
    rows = []
    for i, row in enumerate(given, start=1):
        try:
            rows.append(_row(row))
        except ModelError as error:
            raise error.within(f"row {i}") from None
    if not rows:
        raise ModelError("E-DH-004", "the table has no rows", "give one row per joint")
    return tuple(rows)


def _row(given: Any) -> DHRow:
    if isinstance(given, DHRow):
        return given
    if isinstance(given, Mapping):
        return row_of(given)
    constants = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else ()
    if len(constants) != len(REQUIRED):
        remedy = f"give the sequence ({', '.join(REQUIRED)}), a mapping of fields, or a DHRow"
        raise ModelError("E-DH-005", f"{given!r:.60} is not a row of a DH table", remedy)
    return DHRow(*constants)


def dh_chain(
    name: str,
    rows: Sequence[DHRow],
    convention: Convention,
    *,
    base: Transform | None = None,
    tips: Mapping[str, Transform],
    notes: tuple[str, ...] = (),
) -> Description:
    """Return the description of an arm.

    The links are named base, link1, ...; the joints joint1, ...; and the frames dh1, ....
    `base` is the pose of frame 0 (the frame of link base) in the world. `tips` contains named poses
    relative to the table's last frame.
    """
    links, joints, frames = [LinkData("base", RigidInertia.zero())], [], []
    if base is not None and base != Transform.identity():
        joints.append(JointData("base_joint", "fixed", None, "base", base))
    behind = Transform.identity()
    for i, row in enumerate(rows, start=1):
        Z = Transform(about(2, row.theta), Vector.of(0.0, 0.0, row.d))
        X, none = row.far, Transform.identity()
        before, behind = (behind, X) if convention == "standard" else (X, none)
        link = LinkData(row.link or f"link{i}", swept(behind.T @ row.rigid), row.where)
        ends = links[-1].name, link.name, compose(Z, before)
        same: dict[str, Any] = {key: getattr(row, key) for key in _SAME}
        same["limits"] = Limits(row.limits[0], row.limits[1], row.velocity, row.effort)
        joints.append(JointData(row.name or f"joint{i}", row.kind, *ends, **same))
        links.append(link)
        frames.append(FrameData(f"dh{i}", link.name, behind))
    for tip, pose in tips.items():
        frames.append(FrameData(tip, links[-1].name, compose(pose, behind)))
    return Description(name, tuple(links), tuple(joints), tuple(frames), notes=notes)


def transform(pose: Pose) -> Transform:
    """Convert a homogeneous matrix to a transform, and make right angles exact."""
    R, p = Matrix(tuple(row[:3] for row in pose[:3])), Vector(tuple(row[3] for row in pose[:3]))
    return _exact(Transform.from_pose(R, p))


def matrix(X: Transform) -> np.ndarray:
    """Return the pose of a transform's target frame as a homogeneous matrix."""
    return np.array(X.homogeneous.rows, dtype=float)


class Factors(NamedTuple):
    """Denavit-Hartenberg parameters of a pose, and two errors that are zero if the fit is exact.

    The pose is approximated by Rx(alpha) Tx(a) Rz(theta) Tz(d). `tilt` is the cosine of the angle
    between the first x axis and the last z axis; `across` is the distance between these axes (m).
    """

    a: float
    alpha: float
    theta: float
    d: float
    tilt: float
    across: float


def factors(T: np.ndarray) -> Factors:
    """Return the Denavit-Hartenberg parameters of a pose.

    Tx commutes with Rx, and Rz with Tz, so their order does not matter.
    """
    a, y, z = map(float, T[:3, 3])
    sin, cos = float(-T[1, 2]), float(T[2, 2])
    alpha, theta = math.atan2(sin, cos), math.atan2(float(-T[0, 1]), float(T[0, 0]))
    return Factors(a, alpha, theta, z * cos - y * sin, float(T[0, 2]), y * cos + z * sin)


def _exact(X: Transform) -> Transform:
    """Return the transform with right angles made exact."""
    return compose(X, Transform.identity())
