"""Check the description and the inertias of a mechanism."""

import math
import random
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from chasles.expr import Scalar
from chasles.mathematics.linear import Matrix, Vector, diagonal
from chasles.mathematics.spatial import ArticulatedInertia, RigidInertia
from chasles.model.description import (
    CouplingData,
    Description,
    JointData,
    Limits,
    LinkData,
    RotorData,
    faulty,
    part_of,
)
from chasles.model.joints import LOOP_JOINTS, TYPES, Joint
from chasles.model.model import WORLD, Model
from chasles.names import one_of, similar

_TOLERANCE = 1e-6
"""Relative tolerance for inertias, which are often published with few digits."""

_SINGULAR = 1e-13
"""Ratio of articulated to composite inertia below which the inertia at a joint counts as zero."""

_WEAK = 1e-5
"""Ratio of articulated to composite inertia below which a note is issued for a joint.

The smallest value among published robots is 7e-4.
"""

FAR = 30.0
"""Maximum distance from joint to center of mass, in radii of gyration; bodies beyond it get a note.

At this distance, three digits are lost. The largest distance in a published robot with valid
inertias is 4.
"""


def check_inertias(source: Description, model: Model, *, strict: bool) -> tuple[str, ...]:
    """Return a note for each link with an invalid inertia, or raise an error if `strict`."""
    notes, moving = [], {body.name for body in model.bodies}
    for link in source.links:
        fault, none = _fault(link.inertia), not any((link.inertia.m, *link.inertia.I))
        if fault is None and none and not link.massless and link.name in moving:
            fault = (
                "a moving link has zero inertia; give it mass and inertia, unless it is "
                "only a frame"
            )
        if fault is not None:
            if strict:
                raise faulty("E-MODEL-040", link, fault)
            notes.append(f"{_at(link)}: {fault}")
    return tuple(notes)


def check_type(joint: JointData, known: Sequence[str]) -> None:
    """Raise an error if the joint type is neither known nor user-defined."""
    if joint.kind == "custom" and isinstance(joint.custom, Joint):
        return
    if joint.kind == "custom" or joint.custom is not None:
        problem = (
            "for a user-defined joint type, set kind='custom' "
            "and `custom` to an instance of the type"
        )
        raise faulty("E-MODEL-042", joint, problem)
    if joint.kind not in known:
        remedy = one_of(joint.kind, known)
        raise faulty("E-MODEL-043", joint, f"unknown type {joint.kind!r}", remedy)
    numbers = TYPES[joint.kind].data
    if "radius" in numbers and joint.radius <= 0.0:
        problem = f"the radius of a {joint.kind} joint must be positive, not {joint.radius:g}"
        raise faulty("E-MODEL-044", joint, problem, "give a positive radius in m")
    if "pitch" in numbers and joint.pitch == 0.0:
        problem = f"the pitch of a {joint.kind} joint must not be zero"
        raise faulty(
            "E-MODEL-045", joint, problem, "give the pitch in m/rad, or make the joint revolute"
        )


def missing_end(joint: JointData, links: Container[str | None]) -> tuple[str, str] | None:
    """Return "parent" or "child" and the link's name if a link of a joint does not exist."""
    for role, link in (("parent", joint.parent), ("child", joint.child)):
        if link is not None and link not in links:
            return role, link
    return None


def check_loops(source: Description) -> None:
    """Raise an error for duplicate names and for loop joints with invalid fields."""
    links: set[str | None] = {None, *(link.name for link in source.links)}
    names = {joint.name for joint in source.joints}
    for loop in source.loops:
        if loop.name in names:
            raise faulty(
                "E-MODEL-046", loop, "another joint or loop has the same name", "rename one"
            )
        names.add(loop.name)
        if missing := missing_end(loop, links):
            role, link = missing
            problem = f"the {role} link {link!r} does not exist"
            remedy = similar(link, filter(None, links)) or "check the spelling, or add the link"
            raise faulty("E-MODEL-047", loop, problem, remedy)
        if loop.parent == loop.child:
            problem = f"the loop joint connects link {loop.child!r} to itself"
            raise faulty("E-MODEL-048", loop, problem, "name two different links")
        check_type(loop, tuple(LOOP_JOINTS))
        if loop.mimic is not None:
            problem = "a loop joint has no coordinates and cannot mimic another joint"
            raise faulty("E-MODEL-049", loop, problem, "use mimic for joints of the tree")
        if loop.motion is not None:
            problem = "a loop joint has no coordinates, so its motion cannot be prescribed"
            raise faulty(
                "E-MODEL-050", loop, problem, "prescribe the motion of a joint of the tree"
            )
    ties: list[CouplingData | RotorData] = [*source.couplings, *source.rotors]
    for data in ties:
        if data.name in names:
            problem = "another joint, loop, coupling or rotor has the same name"
            raise faulty("E-MODEL-051", data, problem, "rename one")
        names.add(data.name)


def check_unused(source: Description) -> tuple[str, ...]:
    """Return a note for each loop joint with parameters that apply only to tree joints."""
    remedies = {
        "armature, damping and friction": "make it a tree joint, and close the loop elsewhere",
        "limits": "set limits on tree joints",
    }
    return tuple(
        f"{_at(loop)}: its {what} are ignored, because it has no coordinates; {remedy}"
        for what, remedy in remedies.items()
        for loop in source.loops
        if (loop.limits != Limits() if what == "limits" else loop.resists)
    )


def check_followers(model: Model) -> tuple[str, ...]:
    """Return a note for each mimic joint whose limits are incompatible with those of its leader."""
    notes = []
    for i in model.conflicts:
        data, follow = model.bodies[i].data, model.bodies[i].follow
        assert follow is not None
        leader, limits = model.bodies[follow.leader].data.name, model.limits[follow.leader]
        own = f"its limits {data.limits.lower:.6g} to {data.limits.upper:.6g} are ignored"
        path = f"its position is {follow.ratio:g} times that of joint {leader!r} plus "
        path += f"{follow.offset:g}, and {leader!r} has limits {limits.lower:.6g} to "
        path += f"{limits.upper:.6g}, so the limits of both joints cannot be satisfied together"
        notes.append(f"{_at(data)}: {own}: {path}; correct the limits or the multiplier")
    return tuple(notes)


def check_frames(model: Model) -> tuple[str, ...]:
    """Return a note for each body whose center of mass is farther than `FAR` from its joint.

    Digits are lost, because the body's inertia about the joint is then almost entirely m c^2, with
    the mass m and the distance c (Featherstone 2008, section 10.1).
    """
    notes = []
    for name, radii in far_frames(model):
        far = f"the center of mass is {radii:.0f} radii of gyration from the joint"
        cost = f"which can cost {2.0 * math.log10(radii):.0f} of 16 digits"
        remedy = (
            "move the joint's frame closer to the center of mass, or check the units of the inertia"
        )
        notes.append(f"link {name!r}: {far}, {cost}; {remedy}")
    return tuple(notes)


def far_frames(model: Model) -> list[tuple[str, float]]:
    """Return (name, distance) of bodies whose center of mass is far from the frame's origin.

    The distance, in radii of gyration, is above `FAR`.
    """
    each = [(body.name, _radii(body.inertia)) for body in model.bodies]
    return [(name, radii) for name, radii in each if radii > FAR]


def _radii(inertia: RigidInertia) -> float:
    """Return the distance of the center of mass from the origin, in radii of gyration.

    The result is 0 if the ratio is undefined.
    """
    if _fault(inertia) is not None or not inertia.m > 0.0:
        return 0.0
    m, c, _ = inertia.about_center()
    gyration = math.sqrt(float(np.trace(_about_center(inertia))) / (2.0 * m))
    return math.sqrt(c.dot(c)) / gyration if gyration else 0.0


def check_regular(model: Model) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Find the joints that move no inertia, which make the mass matrix singular.

    Return the names of these joints, and notes. A joint that moves no inertia gets a note unless it
    is part of a loop or coupling. A joint also gets a note if its articulated inertia is so small,
    relative to its composite inertia, that accuracy is lost. Kinematics, inverse dynamics and the
    mass matrix are still defined. The test uses the pivots of the articulated-body recursion at an
    arbitrary configuration; a pivot that is zero there is zero nearly everywhere. The inertia of a
    mimic joint is added to its leader. A rotor adds a matrix of rank one to the mass matrix, so the
    rotor's inertia is added to only one of the joints that drive the rotor. A joint with a
    prescribed motion acts like a fixed joint.
    """
    rng, notes, idle = random.Random(1), [], []
    held = model.owners(i for constraint in model.constraints for i in constraint.bodies)
    X, S, rigid = {}, {}, {WORLD: RigidInertia.zero()}
    whole, model = model, model.bare()
    for i, _, joint, I in model.outward():
        q = joint.integrate(joint.neutral(), Vector(tuple(rng.random() for _ in range(joint.nv))))
        X[i], S[i], rigid[i] = joint.transform(q), joint.subspace(q), I
    for i, p, *_ in model.inward():
        rigid[p] = rigid[p] + X[i].T @ rigid[i]
    led = _led(whole, {i: np.diag(np.array((S[i].T @ (rigid[i] @ S[i])).rows)) for i in S})
    A = {i: ArticulatedInertia.of(I) for i, _, _, I in model.outward()}
    A[WORLD] = ArticulatedInertia.zero()
    for i, p, joint, _ in model.inward():
        if not model.bodies[i].owns:
            A[p] = A[p] + X[i].T @ A[i]
            continue
        U = A[i] @ S[i]
        rotor = joint.armature + Vector(tuple(led[i]))
        D: np.ndarray = np.array((S[i].T @ U + diagonal(rotor)).rows)
        carried: np.ndarray = np.diag(np.array((S[i].T @ (rigid[i] @ S[i]) + diagonal(rotor)).rows))
        share = _share(D, carried)
        if not share > _SINGULAR:
            data = model.bodies[i].data
            if not np.all(np.isfinite(D)):
                problem = (
                    "the inertia of the links that the joint moves exceeds the floating-point range"
                )
                raise faulty("E-MODEL-052", data, problem, "check the units of these links")
            if i not in held:
                notes.append(_moves_nothing(data))
            idle.append(data.name)
        elif share < _WEAK and _radii(model.bodies[i].inertia) <= FAR:
            notes.append(_moves_little(model.bodies[i].data, share))
        undone = np.linalg.inv(D) if share > _SINGULAR else np.linalg.pinv(D, rcond=_SINGULAR)
        inverse = Matrix(tuple(map(tuple, undone.tolist())))
        A[p] = A[p] + X[i].T @ A[i].without(U, U @ inverse)
    return tuple(reversed(idle)), tuple(notes)  # from the root to the leaves


def _led(model: Model, felt: Mapping[int, np.ndarray]) -> dict[int, list[float]]:
    """Return the inertia that mimic joints and rotors add to the joints that move them.

    `felt` contains the inertia that each degree of freedom moves directly. `felt` and the result
    are indexed by body and degree of freedom. The inertia of a rotor is added only once,
    preferably to a degree of freedom that moves no other inertia.
    """
    led = {i: [0.0] * len(own) for i, own in felt.items()}
    for i, body in enumerate(model.parts):
        shares = [s for s in model.shares(i) if s.i != i and s.ratio]
        needy = [s for s in shares if not felt[s.i][s.k] + led[s.i][s.k]]
        for owner, k, ratio in (needy or shares)[:1]:
            own = float(body.joint.armature[0]) + (0.0 if body.geared else felt[i][0])
            led[owner][k] += ratio * ratio * own
    return led


def _share(D: np.ndarray, carried: np.ndarray) -> float:
    """Return the smallest ratio of a joint's articulated inertia to its composite inertia."""
    if not np.all(np.isfinite(D)) or not np.all(np.abs(carried) > 0.0):
        return 0.0
    scale = np.sqrt(np.abs(carried))
    return float(np.min(np.abs(np.linalg.eigvalsh(D / np.outer(scale, scale))), initial=1.0))


def _moves_little(joint: JointData, share: float) -> str:
    return (
        f"{_at(joint)}: link {joint.child!r} is so light compared with the links "
        f"it carries that forward dynamics can lose {-math.log10(share):.0f} of "
        "16 digits; correct its inertia, give the joint an armature, or lock it"
    )


def _moves_nothing(joint: JointData) -> str:
    if joint.traits.floating:
        return (
            f"{_at(joint)}: the base link {joint.child!r} has no mass, so the mass matrix is "
            "singular and forward dynamics is undefined; give it mass and inertia in the file, or "
            "load the robot without a floating base"
        )
    return (
        f"{_at(joint)}: it moves no inertia, so the mass matrix is singular and "
        f"forward dynamics is undefined; attach mass and inertia to link {joint.child!r} "
        "(`attach`), give the joint an armature, or lock it (`lock`)"
    )


def _at(data: LinkData | JointData) -> str:
    return f"{data.where}: {part_of(data)}" if data.where else part_of(data)


def is_solid(inertia: RigidInertia) -> bool:
    """Return True if a body has mass and nonzero moments of inertia about all axes."""
    moments = np.linalg.eigvalsh(_about_center(inertia))
    return bool(inertia.m > 0.0 and moments[0] > _TOLERANCE * moments[-1])


def is_massless(inertia: RigidInertia) -> bool:
    """Return True if a body has no inertia. Symbolic inertias count as nonzero."""
    return not any(isinstance(x, Scalar) or x for x in (inertia.m, *inertia.h, *inertia.I))


def _fault(inertia: RigidInertia) -> str | None:
    """Return a message for an invalid inertia, or None if it is valid."""
    found = inertia_fault(float(inertia.m), _about_center(inertia))
    return None if found is None else found.what


class Fault(NamedTuple):
    """Name of the `chasles lint` check that an inertia fails, and a description of the fault."""

    check: str
    what: str


def inertia_fault(m: float, about_center: np.ndarray) -> Fault | None:
    """Check a mass (kg) and an inertia about the center of mass (kg m2); return a fault or None.

    Thin rods and plates, which have zero extent in some direction, are accepted.
    """
    if m < 0.0:
        return Fault("negative-mass", f"mass {m:g} kg is negative")
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.sum(np.abs(about_center))
    if not np.isfinite(size):
        return Fault("not-positive", "inertia overflows; check its units")
    if m == 0.0:
        none = not np.any(about_center)
        return None if none else Fault("no-mass", "inertia without mass; give the link a mass")
    if not np.any(about_center):
        return None
    low, middle, high = np.linalg.eigvalsh(about_center)
    if low < -_TOLERANCE * high:
        what = f"rotational inertia is not positive definite (smallest moment {low:.3g})"
        return Fault("not-positive", what)
    if low + middle < high * (1.0 - _TOLERANCE):
        return Fault(
            "triangle",
            "principal moments violate the triangle inequality "
            f"({low:.3g} + {middle:.3g} < {high:.3g})",
        )
    if low <= 0.0:
        return Fault("singular", f"rotational inertia is singular (smallest moment {low:.3g})")
    return None


def _about_center(inertia: RigidInertia) -> np.ndarray:
    """Return the 3x3 inertia about the center of mass, with negligible entries set to zero."""
    I = np.array(inertia.I.matrix().rows, dtype=float)
    if inertia.m == 0.0:
        return I
    h = np.array(list(inertia.h), dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):
        central = I - (h @ h * np.eye(3) - np.outer(h, h)) / inertia.m
    central[np.abs(central) < 1e-12 * np.max(np.abs(I))] = 0.0
    return central
