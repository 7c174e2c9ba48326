"""Round trips: a mechanism reads back the same, or is refused, or a note states the difference.

`python tests/formats/trips.py FIRST LAST [.urdf.xml.sdf ...]` tries the robots of these seeds, each
through every format, or through formats one after the other.
"""

import ast
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from any_robot import Sample, any_robot
from same_motion import in_coordinates_of
from support import direct, relative

import chasles
from chasles import formats
from chasles.formats import mjcf_child, mjcf_source, urdf
from chasles.formats.files import short
from chasles.formats.sdf import UNBOUNDED
from chasles.model import JOINTS, Description, JointData, Limits, ModelError, ShapeData
from chasles.model.description import freedom_names

TOLERANCE = 1e-12
FORCES = 1e-9
"""Tolerance of accelerations and loop forces.

A format may use other loop equations, which can be less well conditioned.
"""

ILL = 1e7
"""Condition number above which accelerations and loop forces are not compared."""

SUFFIXES = (".toml", ".urdf", ".xml", ".sdf")

REFUSAL = re.compile(
    r"(joint|loop|link|coupling|rotor|gravity|robot|frame|body|site) [^\n]*; \w[^\n]*"
)
"""Pattern of a refusal: one line that names a part, states the problem, and gives a remedy."""

RENAMED = re.compile(
    r"(link|frame|joint|robot) (.*) is (?:written|read) as ('.*?'|\".*?\")[,:]", re.DOTALL
)


@dataclass(frozen=True)
class Trip:
    """Result of a round trip.

    `refused` is the error message. `wrong` lists differences that no note mentions.
    """

    refused: str = ""
    notes: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    again: Sample | None = None


def trip(sample: Sample, path: Path) -> Trip:
    """Write a mechanism, read it back, and compare."""
    source = sample.source
    try:
        notes = formats.write(source, path)
    except ModelError as error:
        said = str(error)
        return Trip(said, wrong=() if REFUSAL.fullmatch(said) else (f"message: {said}",))
    again = formats.read(path)
    names = Names(again, notes)
    robots = chasles.Robot(source), chasles.Robot(again)
    if (robots[0].nq, robots[0].nv) != (robots[1].nq, robots[1].nv):
        return Trip("", notes, (f"{robots[0]} became {robots[1]}",))
    closed = _coordinates(*robots, names, sample.closed)[0]
    wrong = (*_motion(*robots, names, sample), *_beside(source, again, names, path.suffix))
    return Trip("", notes, wrong, Sample(again, closed, sample.features))


def chain(sample: Sample, suffixes: Sequence[str], folder: Path) -> Trip:
    """Write several files in turn, each from the result of reading the one before."""
    found = Trip(again=sample)
    for k, suffix in enumerate(suffixes):
        assert found.again is not None
        found = trip(found.again, folder / f"{k}{suffix}")
        if found.wrong or found.refused:
            return replace(found, wrong=tuple(f"file {k + 1}: {x}" for x in found.wrong))
    return found


class Names:
    """Names of the parts of a mechanism in a written file, as its notes state."""

    def __init__(self, again: Description, notes: tuple[str, ...]) -> None:
        self.notes = notes
        renamed = (found for note in notes if (found := RENAMED.match(note)))
        self.new = {(found[1], found[2]): str(ast.literal_eval(found[3])) for found in renamed}
        self.free = {joint.child: joint.name for joint in again.joints if joint.kind == "free"}

    def of(self, what: str, name: str) -> str:
        own = self.new.get((what, repr(name)), name)
        return self.new.get((what, short(name)), own)

    def joint(self, joint: JointData) -> str:
        """Return the name of a joint; SDF has no free joints, so these are named when read."""
        new = self.of("joint", joint.name)
        return self.free.get(self.of("link", joint.child), new) if joint.kind == "free" else new

    def noted(self, *words: str) -> bool:
        """Return True if a note contains all these words."""
        return any(all(word in note for word in words) for note in self.notes)


# Motion ----------------------------------------------------------------------------------------


def _coordinates(
    robot: chasles.Robot, other: chasles.Robot, names: Names, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    joints = {name: names.joint(robot.joint(name)) for name in robot.joints}
    return in_coordinates_of(
        other, robot, q, lambda name: joints.get(name) or names.of("joint", name)
    )


def _motion(robot: chasles.Robot, other: chasles.Robot, names: Names, sample: Sample) -> list[str]:
    """Compare dynamics and poses at two states, and loop forces where loops are closed."""
    rng, wrong = np.random.default_rng(0), []
    for q in (sample.closed, robot.random(rng)):
        qd, qdd = rng.normal(size=(2, robot.nv))
        p, order = _coordinates(robot, other, names, q)
        found = {}
        if not sample.source.massless:
            M = direct(robot.model, "mass_matrix", q)[np.ix_(order, order)]
            tau = direct(robot.model, "inverse_dynamics", q, qd, qdd)[order]
            there = direct(other.model, "inverse_dynamics", p, qd[order], qdd[order])
            found["mass matrix"] = relative(direct(other.model, "mass_matrix", p), M)
            found["inverse dynamics"] = relative(there, tau, np.abs(M).max(initial=0.0))
        for frame in robot.frames:
            is_link = frame in {link.name for link in sample.source.links}
            name = names.of("link" if is_link else "frame", frame)
            if names.noted(f"{frame!r} is ", "not written"):
                continue
            if name not in other.frames:
                wrong.append(f"frame {frame!r} is lost")
                continue
            T = direct(robot.model, "forward_kinematics", q, frame=frame)
            found[f"frame {frame!r}"] = relative(
                direct(other.model, "forward_kinematics", p, frame=name), T, 1.0
            )
        wrong += [f"{what}: {error:.1e}" for what, error in found.items() if not error <= TOLERANCE]
    if robot.model.loop_rows and not wrong:
        wrong += _closed(robot, other, names, sample.closed)
    return wrong


def _closed(robot: chasles.Robot, other: chasles.Robot, names: Names, q: np.ndarray) -> list[str]:
    """Check that loops and couplings impose the same constraints and forces."""
    p, order = _coordinates(robot, other, names, q)
    rates, tau = np.random.default_rng(1).normal(size=(2, robot.nv))
    K = direct(robot.model, "loop_matrix", q)
    qd = rates - np.linalg.pinv(K, rcond=1e-9) @ (K @ rates)
    apart = np.abs(direct(other.model, "loop_residual", p)).max(initial=0.0)
    if apart > 10.0 * TOLERANCE:
        return [f"loops are open by {apart:.1e}"]
    mine, theirs = _pulled(robot, q, qd, tau), _pulled(other, p, qd[order], tau[order])
    if mine.rank != theirs.rank:
        return [f"rank of loops {mine.rank} became {theirs.rank}"]
    pairs = {
        "accelerations": (theirs.accelerations, mine.accelerations[order]),
        "loop forces": (theirs.forces, mine.forces[order]),
    }
    errors = {what: relative(a, b, 1.0) for what, (a, b) in pairs.items()}
    well = mine.condition < ILL
    return [f"{what}: {x:.1e}" for what, x in errors.items() if well and not x <= FORCES]


class Pulled(NamedTuple):
    """Motion of a closed mechanism; `forces` are those of its loops on the coordinates."""

    rank: int
    accelerations: np.ndarray
    forces: np.ndarray
    condition: float


def _pulled(robot: chasles.Robot, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> Pulled:
    """Solve K qdd = k, together with M qdd + h = tau in the null space of K."""
    M = direct(robot.model, "mass_matrix", q)
    h = direct(robot.model, "inverse_dynamics", q, qd, np.zeros_like(qd))
    K, k = direct(robot.model, "loop_matrix", q), direct(robot.model, "loop_bias", q, qd)
    U, s, V = np.linalg.svd(K)
    rank = int((s > 1e-9 * max(s[0], 1.0)).sum())
    held, free = V[:rank], V[rank:]
    qdd = held.T @ ((U.T @ k)[:rank] / s[:rank])
    condition = s[0] / s[rank - 1] if rank else 1.0
    if len(free):
        inertia = free @ M @ free.T
        condition = max(condition, float(np.linalg.cond(inertia)))
        qdd = qdd + free.T @ np.linalg.solve(inertia, free @ (tau - h - M @ qdd))
    return Pulled(rank, qdd, M @ qdd + h - tau, condition)


# Other properties ------------------------------------------------------------------------------


def _beside(source: Description, again: Description, names: Names, suffix: str) -> list[str]:
    """Return differences in names, limits and shapes that no note mentions."""
    wrong = []
    if again.name != names.of("robot", source.name):
        wrong.append(f"robot {source.name!r} became {again.name!r}")
    there = {joint.name: joint for joint in again.joints}
    for joint in source.joints:
        parts = [names.joint(joint)]
        if joint.kind != "fixed" and parts[0] not in there:
            split = freedom_names(joint.name, JOINTS[joint.kind].nv)
            parts = [names.of("joint", part) for part in split]
        for part in parts:
            if part in there:
                wrong += _limits(joint, there[part], names)
            elif joint.kind != "fixed":
                wrong.append(f"joint {joint.name!r} is lost")
    for what, mine, theirs in (
        ("loop", source.loops, again.loops),
        ("coupling", source.couplings, again.couplings),
        ("rotor", source.rotors, again.rotors),
    ):
        kept = {part.name for part in theirs}
        lost = (part.name for part in mine if names.of("joint", part.name) not in kept)
        wrong += [f"{what} {name!r} is lost" for name in lost]
    if source.independent != again.independent and not names.noted("independent"):
        wrong.append("independent freedoms are lost")
    return wrong + _shapes(source, again, names, suffix)


def _limits(joint: JointData, there: JointData, names: Names) -> list[str]:
    """Return differences in limits that no note mentions.

    A note about many joints names only some of them. Limits of 1e16 or more are infinite, as in
    SDF.
    """
    noted = names.noted("limits of velocity", "...") or any(
        names.noted(word, repr(name))
        for word in ("limits", "range")
        for name in (joint.name, names.of("joint", joint.name))
    )
    wrong = []
    for bound in fields(Limits):
        a, b = getattr(joint.limits, bound.name), getattr(there.limits, bound.name)
        if a != b and not (abs(a) >= UNBOUNDED and abs(b) >= UNBOUNDED) and not noted:
            wrong.append(f"limit {bound.name} of {joint.kind} {joint.name!r}: {a} became {b}")
    return wrong


def _shapes(source: Description, again: Description, names: Names, suffix: str) -> list[str]:
    """Return the lost shapes of each link, less one for each note about the link."""
    wrong = []
    for link in source.links:
        mine = [shape for shape in source.shapes if shape.link == link.name]
        if suffix == ".urdf":  # a capsule becomes three shapes
            mine = [part for shape in mine for part in urdf.pieces(shape)]
        there = [shape for shape in again.shapes if shape.link == names.of("link", link.name)]
        lost = [shape for shape in mine if not any(_same(shape, x) for x in there)]
        notes = [note for note in names.notes if f"link {link.name!r}" in note]
        if names.noted("shapes of the world"):
            notes += [""] * (len(lost) if link.name == "world" else 0)
        wrong += [f"{shape.kind} of {link.name!r} is lost" for shape in lost[len(notes) :]]
    return wrong


def _same(a: ShapeData, b: ShapeData) -> bool:
    """Return True if two shapes are equal up to rounding.

    MuJoCo stores colors and meshes in float32 and names files by their path. A shape without a
    color may get the default color of the format.
    """
    if (a.kind, a.role, Path(a.file).name) != (b.kind, b.role, Path(b.file).name):
        return False
    digits = 1e-5 if a.kind == "mesh" else TOLERANCE
    alike = a.color is None or (b.color is not None and np.allclose(a.color, b.color, atol=1e-7))
    pairs = [(a.size, b.size), (list(a.pose.r), list(b.pose.r)), (a.pose.R.rows, b.pose.R.rows)]
    return alike and all(np.abs(np.subtract(x, y)).max() < digits for x, y in pairs)


# Command line ----------------------------------------------------------------------------------


def in_process(file: str) -> dict[str, object]:
    """Run MuJoCo's compiler in this process, which is safe for files written by the tests."""
    return mjcf_child.answer(file, "20000")


def main(first: int, last: int, ways: Sequence[str]) -> None:
    setattr(mjcf_source, "compiled", in_process)  # noqa: B010
    told: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, last):
            sample = any_robot(seed)
            for way in ways:
                try:
                    found = chain(sample, re.findall(r"\.\w+", way), Path(folder))
                except Exception as error:
                    found = Trip(wrong=(f"{type(error).__name__}: {error}",))
                told[
                    f"{way} {'wrong' if found.wrong else 'refused' if found.refused else 'same'}"
                ] += 1
                for line in found.wrong[:3]:
                    print(f"seed {seed}, {way}: {line[:300]}", flush=True)
    for outcome, count in sorted(told.items()):
        print(f"{outcome}: {count}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or SUFFIXES)
