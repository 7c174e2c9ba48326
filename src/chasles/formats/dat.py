"""Read and write serial robots in the data format of Legnani et al. (1996), part II, fig. 6.

A file contains the records below, in this order, in SI units and radians. A record ends at the end
of a line, and may span several lines, because the C program in the paper reads it with `fscanf`.

- the number of links;
- for every link, three records:
  joint type (0 revolute, 1 prismatic; not in the paper: 2 helical, 3 cylindrical), theta, s, b, a,
  alpha, and the pitch (m/rad) if the joint is helical;
  mass, jxx, jxy, jxz, jyy, jyz, jzz;
  center of mass x, y, z;
- gravity x, y, z in the base frame;
- zero or more loads on the gripper: force x, y, z and couple x, y, z.

Frames follow the standard Denavit-Hartenberg convention with an additional length b: M(i-1, i) =
Rz(theta) T(a, b, s) Rx(alpha). The joint coordinate is added to theta or to s. Center of mass and
moments of inertia are expressed in frame i; the moments are about the center of mass. jxy, jxz, jyz
are entries of the inertia tensor (minus the integral of xy dm). The listing in the paper has one
`%f` too few in the `fscanf` call for the second record.
"""

import itertools
import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath

import numpy as np

from chasles.errors import ModelError
from chasles.formats import files
from chasles.formats.files import short, words
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import about
from chasles.mathematics.spatial import Transform
from chasles.model import Description, JointData
from chasles.model.build import compose
from chasles.model.denavit_hartenberg import DHRow, dh_chain, factors, matrix
from chasles.model.description import Named, spelled, spelling
from chasles.model.ranges import LARGEST
from chasles.names import one_of
from chasles.writing import store

GRIPPER = "gripper"
"""Name of the gripper frame, at which the forces and couples in the file act."""

KINDS = spelled("DAT")
"""Joint types by code. SPACELIB defines the codes 0 and 1; the other codes are extensions."""

_HELICAL = spelling("helical", "DAT")
"""Code of a helical joint. The record of a helical joint ends with the pitch."""

_LINKS = ("number of links",)
_JOINT = ("type", "theta", "s", "b", "a", "alpha")
_MASS = ("mass", "jxx", "jxy", "jxz", "jyy", "jyz", "jzz")
_CENTER = ("xg", "yg", "zg")
_GRAVITY = ("gx", "gy", "gz")
_ACTION = ("fx", "fy", "fz", "cx", "cy", "cz")
"""Field names by record: link count, joint, mass, center of mass, gravity and gripper load."""

_ROUNDING = 1e-12
"""Tolerance for rounding errors in poses (m for positions, dimensionless for rotations)."""


def read(path: str | os.PathLike[str], *, snap: bool = True, floating: bool = False) -> Description:
    """Read a robot from a data file.

    The links are named base, link1, ...; the joints joint1, ...; and the frames dh1, ... The frame
    "gripper" coincides with the last dh frame. If `snap` is True, replace each angle that is
    written as a rounded multiple of pi/2 with the exact multiple, and add a note. If `floating` is
    True, raise an error, because the format does not store the mass of the base. Forces and couples
    on the gripper are not part of the robot; use `actions` to read them. Invalid forces and
    couples still raise an error.
    """
    source = _Source(os.fsdecode(path), snap)
    if floating:
        problem = "the base cannot float, because a .dat file does not store the mass of the base"
        remedy = "use a URDF file, or omit `floating`"
        raise ModelError("E-DAT-001", problem, remedy, file=source.file)
    rows = source.rows()
    gravity = source.vector("gravity", _GRAVITY)
    if sum(1 for _ in source.actions()) > 0:
        what = "`chasles motion` applies the file's forces and moments to the gripper"
        source.notes.append(f"{source.file}: {what}")
    name = PurePath(source.file).stem
    chain = dh_chain(name, rows, "standard", tips={GRIPPER: Transform.identity()})
    return replace(chain, gravity=gravity, notes=tuple(source.notes), where=source.file)


def actions(path: str | os.PathLike[str]) -> np.ndarray:
    """Return the forces (N) and couples (N m) on the gripper in a data file as an array (n, 6).

    Each row contains a force and a couple about the gripper's origin, expressed in the gripper
    frame. The program of Legnani et al. also uses this frame. A file has either one
    row for the whole motion or one row per sample.
    """
    source = _Source(os.fsdecode(path), snap=False)
    source.rows()
    source.vector("gravity", _GRAVITY)
    numbers = np.fromiter(itertools.chain.from_iterable(source.actions()), dtype=float)
    return numbers.reshape(-1, len(_ACTION))


class _Source:
    """Data file that is read record by record."""

    def __init__(self, file: str, snap: bool) -> None:
        files.check_bearable(file)
        self.file, self.snap = file, snap
        self.notes: list[str] = []
        self._lines = files.lines(file)
        self._last = 0

    def error(
        self, code: str, problem: str, remedy: str, line: int = 0, part: str = ""
    ) -> ModelError:
        """Return an error that refers to `line`, by default the last line read."""
        here = line or max(self._last, 1)
        return ModelError(code, problem, remedy, part=part, file=self.file, line=here)

    def rows(self) -> list[DHRow]:
        """Read the number of links and then the parameters of each link."""
        line, (count,) = self.record("robot", _LINKS)
        if not (count.isascii() and count.isdigit() and len(count) < 7 and int(count) > 0):
            problem = f"{short(count)} is not a valid number of links"
            raise self.error("E-DAT-002", problem, "give a positive integer", line)
        return [self._row(f"link {i}") for i in range(1, int(count) + 1)]

    def record(self, part: str, names: tuple[str, ...]) -> tuple[int, list[str]]:
        """Read the next record; return its line number and its values as strings."""
        if (found := self.next_record(part, names)) is None:
            problem = f"the record ({' '.join(names)}) is missing at the end of the file"
            raise self.error("E-DAT-003", problem, "add the missing values", part=part)
        return found

    def next_record(self, part: str, names: tuple[str, ...]) -> tuple[int, list[str]] | None:
        """Read the next record as `record` does, but return None at the end of the file."""
        words: list[str] = []
        first = 0
        for line in self._lines:
            self._last = line.number
            first = first or line.number
            for word in line.text.split():
                self._check(word, " ".join(names), part)
                words.append(word)
            if names == _JOINT and words and words[0] == _HELICAL:
                names = (*_JOINT, "pitch")
            wanted = " ".join(names)
            if len(words) > len(names):
                since = "" if first == line.number else f" since line {first}"
                problem = f"found {len(words)} numbers{since}, but expected {len(names)}: {wanted}"
                remedy = "add the missing number, or end the line where the record ends"
                raise self.error("E-DAT-007", problem, remedy, part=part)
            if len(words) == len(names):
                return first, words
        if words:
            problem = f"the file ends after {len(words)} of {len(names)} numbers"
            problem += f" ({' '.join(names)})"
            raise self.error("E-DAT-006", problem, "add the missing numbers", part=part)
        return None

    def _check(self, word: str, wanted: str, part: str) -> None:
        if not files.is_number(word):
            problem = f"{short(word)} in the record ({wanted}) is not a finite number"
            raise self.error(
                "E-DAT-004", problem, "write a number such as 0.5, -2 or 1e-3", part=part
            )
        if abs(float(word)) > LARGEST:
            problem = f"{short(word)} in the record ({wanted}) is too large"
            raise self.error(
                "E-DAT-005", problem, f"give a number of at most {LARGEST:g}", part=part
            )

    def vector(self, part: str, names: tuple[str, ...]) -> Vector:
        return Vector(tuple(map(float, self.record(part, names)[1])))

    def actions(self) -> Iterator[list[float]]:
        """Yield the remaining records, each with a force and a moment on the gripper."""
        while (found := self.next_record("force and moment on the gripper", _ACTION)) is not None:
            yield list(map(float, found[1]))

    def _row(self, part: str) -> DHRow:
        line, (code, theta, s, b, a, alpha, *pitch) = self.record(part, _JOINT)
        if code not in KINDS:
            kinds = ", ".join(f"{code} ({kind})" for code, kind in KINDS.items())
            problem = f"{short(code)} is not a joint type"
            raise self.error("E-DAT-008", problem, f"use one of {kinds}", line, part)
        below, words = self.record(part, _MASS)
        m, xx, xy, xz, yy, yz, zz = map(float, words)
        if m < 0.0:
            raise self.error(
                "E-DAT-009", f"mass is {words[0]}", "give a non-negative number", below, part
            )
        turn, twist = (self._angle(line, part, angle) for angle in (theta, alpha))
        body = m, tuple(self.vector(part, _CENTER)), (xx, yy, zz, xy, xz, yz)
        constants = turn, float(s), float(a), twist, KINDS[code], float(b)
        screw = float(pitch[0]) if pitch else 0.0
        return DHRow(*constants, *body, pitch=screw, where=f"{self.file}:{line}")

    def _angle(self, line: int, part: str, word: str) -> float:
        def note(what: str) -> None:
            self.notes.append(f"{self.file}:{line}: {part}: {what}")

        k = files.snapped(word, "angle", note) if self.snap else 0
        return files.radians(k) if k else float(word)


# Writing ---------------------------------------------------------------------------------------


def write(description: Description, path: str | os.PathLike[str], *, gripper: str = "") -> None:
    """Write a serial robot to a .dat file; a robot read from the file moves in the same way.

    The frame `gripper` on the last link becomes the last Denavit-Hartenberg frame; if `gripper` is
    empty, the link frame is used. Names, limits and the inertia of the base are omitted, because
    the format does not store them. Properties that affect the motion but cannot be represented
    raise an error: unsupported joint types, branches, armature, damping, friction, springs, mimic
    joints, axes other than z, and frames that Denavit-Hartenberg parameters cannot describe.
    """
    chain = _serial(description)
    near = [_between(joint) for joint in chain]
    far = [*(constants[:3] for constants in near), _far_end(description, chain[-1].child, gripper)]
    if max(map(abs, far[0])) > _ROUNDING:
        raise _refused("E-DAT-010", chain[0], "its axis is not z of the base frame")
    inertia = {link.name: link.inertia for link in description.links}
    text = [f"# {description.name!a}", f"{len(chain)}  # links"]
    for joint, (*_, theta, s), (a, b, alpha) in zip(chain, near, far[1:], strict=True):
        X = compose(Transform(about(0, alpha), Vector.of(a, b, 0.0)), Transform.identity())
        code = spelling(joint.kind, "DAT")
        pitch = [joint.pitch] if code == _HELICAL else []
        names = " ".join((*_JOINT, *(["pitch"] if pitch else [])))
        text += ["", f"{code} {words([theta, s, b, a, alpha, *pitch])}  # {names}"]
        m, center, (xx, yy, zz, xy, xz, yz) = (X @ inertia[joint.child]).about_center()
        text.append(f"{words([m, xx, xy, xz, yy, yz, zz])}  # {' '.join(_MASS)}")
        text.append(f"{words(center)}  # {' '.join(_CENTER)}")
    text += ["", f"{words(description.gravity)}  # {' '.join(_GRAVITY)}"]
    store(path, "\n".join(text) + "\n")


def _refused(code: str, joint: JointData, problem: str) -> ModelError:
    problem += ", which a .dat file cannot represent"
    return ModelError(code, problem, "save the robot as a .urdf file", part=f"joint {joint.name!r}")


def _serial(description: Description) -> tuple[JointData, ...]:
    """Return the joints from base to tip; raise an error if a .dat file cannot represent them."""
    closing: list[Named] = [*description.loops, *description.couplings, *description.rotors]
    for part in closing:
        problem = (
            f"{part.name!r} closes a loop or couples joints, which a .dat file cannot represent"
        )
        raise ModelError("E-DAT-011", problem, "save the robot as a mechanism file (.toml)")
    if not description.joints:
        problem = f"robot {description.name!r} has no joints"
        raise ModelError("E-DAT-018", problem, "add at least one joint")
    end = description.joints[0].parent
    for joint in description.joints:
        if "DAT" not in joint.traits.names:
            raise _refused("E-DAT-012", joint, f"its type is {joint.kind}")
        if joint.parent is None or joint.parent != end:
            raise _refused("E-DAT-013", joint, "it does not start where the previous joint ends")
        if joint.resists:
            problem = "it has armature, damping, friction or a spring"
            raise _refused("E-DAT-014", joint, problem)
        if joint.mimic is not None:
            raise _refused("E-DAT-015", joint, f"it mimics {joint.mimic.joint!r}")
        if joint.child_pose != Transform.identity():
            raise _refused(
                "E-DAT-016", joint, "its frame on the child link differs from the link frame"
            )
        if tuple(joint.axis) != (0.0, 0.0, 1.0):
            raise _refused("E-DAT-017", joint, "its axis is not z of its own frame")
        end = joint.child
    return description.joints


def _between(joint: JointData) -> tuple[float, float, float, float, float]:
    """Return the Denavit-Hartenberg parameters a, b, alpha, theta, s of a joint pose.

    The pose is T(a, b, 0) Rx(alpha) Rz(theta) Tz(s).
    """
    a, alpha, theta, d, tilt, across = factors(matrix(joint.pose))
    cos = math.cos(alpha)
    b = 0.0
    if abs(across) > _ROUNDING * max(1.0, abs(d), abs(across)):
        b = across / cos if abs(cos) > _ROUNDING else math.nan
    if abs(tilt) > _ROUNDING or math.isnan(b):
        raise _refused(
            "E-DAT-019", joint, "no Denavit-Hartenberg parameters describe its placement"
        )
    return a, b, alpha, theta, d + b * math.sin(alpha)


def _far_end(description: Description, link: str, gripper: str) -> tuple[float, float, float]:
    """Return the parameters a, b, alpha of the gripper pose T(a, b, 0) Rx(alpha).

    The pose is relative to the last link.
    """
    if not gripper:
        return 0.0, 0.0, 0.0
    for frame in description.frames:
        if frame.name == gripper and frame.link == link:
            rows: np.ndarray = np.array(frame.pose.R.rows, dtype=float)
            a, b, z = map(float, frame.pose.r)
            if max(abs(z), abs(rows[0, 1]), abs(rows[0, 2]), 1.0 - rows[0, 0]) > _ROUNDING:
                problem = "the pose on the last link does not have the form T(a, b, 0) Rx(alpha)"
                raise ModelError(
                    "E-DAT-020", problem, "choose another frame", part=f"frame {gripper!r}"
                )
            return a, b, math.atan2(-rows[1, 2], rows[2, 2])
    problem = f"the last link {link!r} does not have a frame {gripper!r}"
    known = [frame.name for frame in description.frames if frame.link == link]
    remedy = one_of(gripper, known) if known else "add this frame to the link"
    raise ModelError("E-DAT-021", problem, remedy, part=f"robot {description.name!r}")
