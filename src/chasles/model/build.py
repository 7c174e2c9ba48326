"""Build a model from a description.

Building numbers the bodies, merges links that are joined by fixed joints, and aligns joint axes.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from chasles.errors import ArgumentError, ModelError
from chasles.expr import Number, Scalar
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.rotations import Rotation, aligned_to_z
from chasles.mathematics.spatial import RigidInertia, Transform, inverted
from chasles.model import validate
from chasles.model.constraints import Coupling
from chasles.model.couplings import Drive
from chasles.model.custom import check_custom
from chasles.model.description import (
    CouplingData,
    Description,
    JointData,
    LoopData,
    RotorData,
    faulty,
    freedom_names,
    some,
)
from chasles.model.given import check_numbers
from chasles.model.joints import JOINTS, TYPES, Joint, Reversed, Revolute
from chasles.model.model import (
    WORLD,
    Body,
    Follow,
    Frame,
    Loop,
    Model,
    Passage,
)
from chasles.model.transmissions import (
    check_actuators,
    check_fluid,
    check_states,
    freedoms,
    tendon_of,
)
from chasles.names import similar, suggest

_ROUNDING = 1e-15
"""Tolerance within which entries of constant transforms are rounded to 0 or +-1."""


def build(source: Description, *, mimic: bool = True, strict: bool = False) -> Model:
    """Build a model from a description.

    Parameters
    ----------
    source : Description
        Links, joints, frames, loops and couplings.
    mimic : bool, optional
        If True (the default), mimic joints follow their leaders and have no coordinates.
    strict : bool, optional
        Raise an error for invalid inertias, which are accepted with a note by default.

    Returns
    -------
    model : Model
        The model.

    Raises
    ------
    ModelError
        If the description is inconsistent, for example if a link or joint does not exist, or if a
        number is out of range.
    ArgumentError
        If `source` is not a Description.

    Examples
    --------
    >>> import chasles
    >>> description = chasles.robots.planar(2).model.source
    >>> len(chasles.model.build(description).bodies)
    2
    """
    if not isinstance(source, Description):
        problem = f"`source` must be a Description, not {type(source).__name__}"
        raise ArgumentError("E-MODEL-055", problem, "use chasles.load(path) for a file")
    for data in (*source.joints, *source.loops):
        if isinstance(data.custom, Joint):
            check_custom(data, data.custom)
    model = connected(source, mimic=mimic)
    bounded = validate.check_followers(model)
    if source.massless:
        only = "no masses are given: only kinematics is available"
        return replace(model, notes=(*source.notes, *bounded, only))
    odd = validate.check_inertias(source, model, strict=strict)
    idle, lossy = validate.check_regular(model)
    if source.actuators:
        check_actuators(model)
    if source.keyframes or any(joint.start for joint in source.joints):
        check_states(model)
    if source.fluid is not None:
        check_fluid(model)
    notes = odd + validate.check_unused(source) + validate.check_frames(model) + lossy + bounded
    return replace(model, notes=source.notes + notes, idle=idle)


def connected(source: Description, *, mimic: bool) -> Model:
    """Build a model without physical checks, from a description that may contain symbols."""
    check_numbers(source)
    children = _connect(source)
    validate.check_loops(source)
    links = {link.name: link for link in source.links}
    frames: dict[str, Frame] = {}
    bodies: list[Body] = []
    world = Frame("", WORLD, Transform.identity())
    pending = [(joint, world) for joint in reversed(children[None])]
    while pending:
        joint, owner = pending.pop()
        pose, link = compose(joint.pose, owner.placement), inverted(joint.child_pose)
        if joint.kind == "fixed":
            if joint.motion is not None:
                problem = "the motion of a fixed joint cannot be prescribed"
                raise faulty("E-MODEL-001", joint, problem, "choose a joint type that can move")
            here = Frame(joint.child, owner.body, compose(link, pose))
        else:
            E = natural_axes(joint)
            made = _make_joint(joint, compose(_turned(E), pose))
            body = Body(joint.child, owner.body, made, RigidInertia.zero(), joint)
            bodies.append(replace(body, drive=_driven(joint, made)))
            here = Frame(joint.child, len(bodies) - 1, compose(link, _turned(E.T)))
        frames[joint.child] = here
        if here.body != WORLD:
            carrier = bodies[here.body]
            moved = here.placement.T @ links[joint.child].inertia
            bodies[here.body] = replace(carrier, inertia=carrier.inertia + moved)
        pending.extend((child, here) for child in reversed(children[joint.child]))
    for frame in source.frames:
        if frame.name in frames:
            problem = f"two frames are named {frame.name!r}"
            raise ModelError("E-MODEL-002", problem, part=f"robot {source.name!r}")
        if frame.link not in links:
            problem = f"link {frame.link!r} does not exist"
            remedy = similar(frame.link, links) or "check the spelling, or add the link"
            part = f"frame {frame.name!r}"
            raise ModelError("E-MODEL-003", problem, remedy, part=part, file=source.where)
        carried = frames[frame.link]
        placement = compose(frame.pose, carried.placement)
        frames[frame.name] = Frame(frame.name, carried.body, placement)
    if mimic:
        bodies = _couple(bodies)
    ordered = {link.name: frames[link.name] for link in source.links} | frames
    model = Model(source.name, tuple(bodies), ordered, source.gravity, source, mimic=mimic)
    return replace(
        model,
        loops=tuple(_closed(model, loop) for loop in source.loops),
        couplings=tuple(_coupled(model, data) for data in source.couplings),
        rotors=tuple(
            x
            for data in source.rotors
            if (x := _turning(model, data)).turned
            and (type(data.armature) is not float or data.armature)
        ),
    )


def with_loop(model: Model, data: LoopData) -> Model:
    """Return a copy of a model with `data` as its only loop and without couplings."""
    return replace(model, loops=(_closed(model, data),), couplings=())


def _turned(E: Matrix) -> Transform:
    return Transform(Rotation.of(E), Vector.zero())


def _closed(model: Model, data: LoopData) -> Loop:
    """Convert a loop joint of the description to a `Loop` of the model."""
    turned, world = _turned(natural_axes(data)), Frame("", WORLD, Transform.identity())

    def end(link: str | None, pose: Transform) -> Frame:
        owner = world if link is None else model.frames[link]
        return Frame(data.name, owner.body, compose(turned, compose(pose, owner.placement)))

    ends = end(data.parent, data.pose), end(data.child, data.child_pose)
    before, after = ([*model.support(frame.body), WORLD] for frame in ends)
    root = next(i for i in before if i in after)
    path = [Passage(i, -1.0) for i in before[: before.index(root)]]
    path += [Passage(i, 1.0) for i in after[: after.index(root)]]
    joint = _make_joint(data, Transform.identity())
    return Loop(joint, *ends, root, tuple(sorted(path)), data)


def _coupled(model: Model, data: CouplingData) -> Coupling:
    """Convert a coupling of the description to a `Coupling` of the model.

    Names of coordinates and velocities are replaced by (body, index in the body's joint).
    """
    known, speeds = dict[str, tuple[int, int]](), freedoms(model)
    for i, body in enumerate(model.bodies):
        names = freedom_names(body.data.name, body.joint.nv)
        if not body.joint.additive:
            words = body.joint.numbers.position.split()
            names = tuple(f"{body.data.name}[{word}]" for word in words)
        known |= {name: (i, k) for k, name in enumerate(names)}
    for name in data.freedoms:
        if name not in known:
            problem = f"coordinate {name!r} does not exist"
            raise faulty("E-MODEL-004", data, problem, suggest(name, known))
    for name in data.rates:
        if name not in speeds:
            problem = f"velocity coordinate {name!r} does not exist"
            raise faulty("E-MODEL-320", data, problem, suggest(name, speeds))
    for name in data.frames:
        if name not in model.frames:
            problem = f"frame {name!r} does not exist"
            raise faulty("E-MODEL-321", data, problem, suggest(name, model.frames))
    carried = (model.support(model.frames[name].body) for name in data.frames)
    return Coupling(
        tuple(known[name] for name in data.freedoms),
        data,
        rates=tuple(speeds[name] for name in data.rates),
        carried=tuple(sorted({i for path in carried for i in path})),
    )


def _turning(model: Model, data: RotorData) -> Body:
    """Return a rotor as a massless body on an extra joint that is driven by other joints."""
    tendon = tendon_of(model, data)
    hinge = JointData(data.name, Revolute.kind, None, data.name, armature=data.armature)
    made = _make_joint(hinge, Transform.identity())
    body = Body(data.name, WORLD, made, RigidInertia.zero(), hinge)
    return replace(body, geared=tendon.geared, path=tendon.path)


def compose(second: Transform, first: Transform) -> Transform:
    """Return `second @ first`, with entries near 0 and +-1 made exact."""
    whole = second @ first
    E = Matrix(tuple(tuple(map(_clean, row)) for row in whole.E.matrix().rows))
    return Transform(Rotation.of(E), Vector(tuple(map(_clean, whole.r))))


def _clean(x: Number) -> Number:
    if isinstance(x, Scalar) or not math.isfinite(x):  # NaN and infinity are rejected later
        return x
    nearest = float(round(x))
    return nearest if abs(nearest) <= 1.0 and abs(x - nearest) < _ROUNDING else float(x)


def swept(inertia: RigidInertia) -> RigidInertia:
    """Return the inertia with negligible entries set to zero.

    An entry of the first moment h or of I is negligible if it is smaller than 1e-15 times the
    largest entry of h or I, respectively.
    """

    def kept(entries: Iterable[Number]) -> list[Number]:
        given = list(entries)
        small = 1e-15 * max(map(abs, given))
        return [x if abs(x) > small else 0.0 for x in given]

    return RigidInertia(inertia.m, Vector(tuple(kept(inertia.h))), Symmetric(*kept(inertia.I)))


def _connect(source: Description) -> dict[str | None, list[JointData]]:
    """Return the child joints of each link. Raise an error if the links do not form a tree."""
    names = [link.name for link in source.links]
    _unique(source, "links", names)
    _unique(source, "joints", [joint.name for joint in source.joints])
    if not names:
        raise faulty("E-MODEL-005", source, "the robot has no links", "give it at least one link")
    children: dict[str | None, list[JointData]] = {None: []} | {name: [] for name in names}
    parent_of: dict[str, JointData] = {}
    for joint in source.joints:
        if missing := validate.missing_end(joint, children):
            role, link = missing
            problem = f"the {role} link {link!r} does not exist"
            remedy = similar(link, names) or "check the spelling, or add the link"
            raise faulty("E-MODEL-006", joint, problem, remedy)
        if joint.child in parent_of:
            before = parent_of[joint.child].name
            problem = f"link {joint.child!r} already has a parent through joint {before!r}"
            raise faulty(
                "E-MODEL-007",
                joint,
                problem,
                "give each link one parent; close loops with loop joints",
            )
        validate.check_type(joint, ("fixed", *JOINTS))
        parent_of[joint.child] = joint
        children[joint.parent].append(joint)
    roots = [name for name in names if name not in parent_of]
    if len(roots) + bool(children[None]) > 1:
        held = [joint.child for joint in children[None]]
        problem = f"the links form several separate trees, with roots {some(roots + held, 8)}"
        loose = next(link for link in source.links if link.name == roots[-1])
        error = faulty("E-MODEL-008", source, problem, "connect the trees with joints")
        raise error.at(file=loose.where or source.where)
    reached, pending = set(), [*roots, *(joint.child for joint in children[None])]
    while pending:
        link = pending.pop()
        reached.add(link)
        pending.extend(joint.child for joint in children[link])
    if len(reached) < len(names):
        loop = [name for name in names if name not in reached]
        problem = f"links {', '.join(map(repr, loop[:8]))} form a cycle"
        remedy = "make one link a root, without a parent"
        raise ModelError("E-MODEL-009", problem, remedy, file=parent_of[loop[0]].where)
    for root in roots:
        children[None].append(JointData("", "fixed", None, root))
    return children


def _unique(source: Description, what: str, names: list[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            problem = f"two {what} are named {name!r}"
            raise faulty("E-MODEL-010", source, problem, "rename one of them")


def natural_axes(joint: JointData) -> Matrix:
    """Return the rotation matrix E from the joint frame to the natural axes of the joint type."""
    along = TYPES.get(joint.kind, Joint).along
    if not along:
        return Matrix.identity()
    axis = _unit(joint, joint.axis)
    if len(along) == 1 or joint.second_axis is None:
        x, y, z = aligned_to_z(axis).rows
        return _from("xyz".index(along[0]), z, x, y)
    second = _unit(joint, joint.second_axis)
    if abs(axis.dot(second)) > 1e-9:
        problem = f"the two axes of a {joint.kind} joint must be perpendicular"
        raise faulty("E-MODEL-011", joint, problem, joint.traits.askew)
    third = axis.cross(second)
    return _from("xyz".index(along[0]), axis.entries, second.entries, third.entries)


def _from(first: int, *axes: tuple[Number, ...]) -> Matrix:
    """Return a matrix with the axes as rows in cyclic order; the first axis is row `first`."""
    return Matrix(tuple(axes[(k - first) % 3] for k in range(3)))


def _unit(joint: JointData, axis: Vector) -> Vector:
    length = math.sqrt(axis.dot(axis))
    if not math.isfinite(length) or length < 1e-9:
        raise faulty("E-MODEL-012", joint, "axis has zero length", "give a unit vector")
    return Vector(tuple(_clean(a / length) for a in axis))


def _make_joint(joint: JointData, placement: Transform) -> Joint:
    made = joint.custom
    if made is None:
        kind = TYPES[joint.kind]
        made = kind(**{name: getattr(joint, name) for name in kind.data})
    if joint.reversed:
        made = Reversed(inner=made)
    each = {
        name: Vector((getattr(joint, name),) * made.nv)
        for name in ("armature", "damping", "friction", "stiffness")
    }
    rest = Vector(joint.rest) if joint.rest else made.neutral()
    if len(rest) != made.nq:
        problem = (
            f"the spring's rest position has {len(rest)} values, but the joint has "
            f"{made.nq} coordinates"
        )
        raise faulty("E-MODEL-400", joint, problem, "give one value per coordinate")
    return replace(made, placement=placement, rest=rest, load=Vector.zero(made.nv), **each)


def _driven(data: JointData, joint: Joint) -> Drive | None:
    """Return the prescribed motion of a joint, or None."""
    if data.motion is None:
        return None
    if data.mimic is not None:
        problem = f"a joint with a prescribed motion cannot also mimic {data.mimic.joint!r}"
        raise faulty("E-MODEL-013", data, problem)
    if not joint.holonomic:
        problem = (
            f"a {joint.kind} joint constrains only velocities, so its motion cannot be prescribed"
        )
        raise faulty("E-MODEL-014", data, problem, "prescribe the motion of another joint")
    size = len(data.motion.results[0])
    if size != joint.nq:
        problem = (
            f"the prescribed motion has {size} values, but a {joint.kind} joint has "
            f"{joint.nq} coordinates"
        )
        raise faulty("E-MODEL-015", data, problem, "give one value per coordinate")
    return Drive(data.motion)


def with_leaders(source: Description) -> Description:
    """Make mimic joints independent if their leader does not exist or is fixed.

    Each of these joints is listed in `unsupported`.
    """
    moving = [joint.name for joint in source.joints if joint.kind != "fixed"]
    joints, lost = [], []
    for joint in source.joints:
        if joint.mimic and joint.kind != "fixed" and joint.mimic.joint not in moving:
            problem = f"the mimicked joint {joint.mimic.joint!r} does not exist or is fixed"
            remedy = similar(joint.mimic.joint, moving) or "name a moving joint"
            part = f"{joint.where}: joint {joint.name!r}"
            lost.append(f"{part}: {problem}, so the joint is independent; {remedy}")
            joint = replace(joint, mimic=None)
        joints.append(joint)
    if not lost:
        return source
    return replace(source, joints=tuple(joints), unsupported=(*source.unsupported, *lost))


def _couple(bodies: list[Body]) -> list[Body]:
    """Connect every mimic joint to its leader, and resolve chains of mimic joints."""
    number = {body.data.name: i for i, body in enumerate(bodies)}

    def lead(i: int, seen: tuple[str, ...]) -> Follow | None:
        data = bodies[i].data
        if data.mimic is None:
            return None
        if data.mimic.joint not in number:
            problem = f"the mimicked joint {data.mimic.joint!r} does not exist or is fixed"
            remedy = "name a moving joint, or load with mimic=False"
            raise faulty("E-MODEL-016", data, problem, remedy)
        if data.name in seen:
            problem = f"the joint mimics itself: {' -> '.join((*seen, data.name))}"
            raise faulty("E-MODEL-017", data, problem, "remove mimic from one of these joints")
        leader = number[data.mimic.joint]
        for k in (i, leader):
            if bodies[k].joint.nv != 1:
                problem = (
                    f"joint {bodies[k].data.name!r} has {bodies[k].joint.nv} degrees of freedom"
                )
                remedy = "only joints with one degree of freedom can mimic or be mimicked"
                raise faulty("E-MODEL-018", data, problem, remedy)
        above = lead(leader, (*seen, data.name)) or Follow(leader, 1.0, 0.0)
        ratio = data.mimic.multiplier
        return Follow(above.leader, ratio * above.ratio, ratio * above.offset + data.mimic.offset)

    def coupled(i: int, body: Body) -> Body:
        follow = lead(i, ())
        drive = None if follow is None else bodies[follow.leader].drive
        if follow is None or drive is None:
            return replace(body, follow=follow)
        return replace(body, drive=drive.geared(follow.ratio, follow.offset))

    return [coupled(i, body) for i, body in enumerate(bodies)]
