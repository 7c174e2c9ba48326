"""The tree that algorithms walk: bodies in regular numbering, frames, and where coordinates lie.

Long because a model and its parts (bodies with joints, rotors, frames, loops) are read together.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from chasles.errors import ArgumentError, ModelError
from chasles.expr import Number
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.spatial import Motion, RigidInertia, Transform
from chasles.model.constraints import Coupling
from chasles.model.couplings import Drive
from chasles.model.description import Closure, Description, JointData, LoopData, RotorData
from chasles.model.given import a_name
from chasles.model.joints import Joint

WORLD = -1
"""Number of the world, the parent of root bodies; its zero motion folds away in programs."""

# Parts -------------------------------------------------------------------------------------------


class Follow(NamedTuple):
    """A coordinate that follows that of body `leader`: ratio times it, plus offset."""

    leader: int
    ratio: float
    offset: float


LoadSlopes = tuple[dict[tuple[int, int], Matrix], dict[tuple[int, int], Matrix]]
"""Derivatives of loads by a step of q, and by qd: blocks by body."""


class Share(NamedTuple):
    """Contribution of degree of freedom k of the joint of body i to a velocity: ratio times its
    own.

    If it represents all degrees of freedom of a joint, k is the first.
    """

    i: int
    k: int
    ratio: Number


class Stretch(NamedTuple):
    """A straight piece of a tendon between points r and s (m) of bodies a and b.

    Its length counts by `factor`.
    """

    a: int
    r: Vector
    b: int
    s: Vector
    factor: float


@dataclass(frozen=True)
class Body:
    """A moving body, and the joint to its parent, which may follow others or have a prescribed
    motion.

    A rotor has no coordinate and no link; `geared` lists the degrees of freedom that drive it. That
    of a tendon has a path, from which `algorithms.spatial.tendons` has its gears for a position,
    and its acceleration with all others zero, the drift.
    """

    name: str
    parent: int
    joint: Joint
    inertia: RigidInertia
    data: JointData
    follow: Follow | None = None
    drive: Drive | None = None
    geared: tuple[Share, ...] = ()
    path: tuple[Stretch, ...] = ()
    drift: Number = 0.0

    @property
    def turned(self) -> bool:
        """Return True for a rotor, which other joints drive."""
        return bool(self.geared or self.path)

    @property
    def owns(self) -> bool:
        """Return True if its joint has coordinates of its own."""
        return self.follow is None and self.drive is None and not self.turned


@dataclass(frozen=True)
class Frame:
    """A named frame: fixed to a body (or to the world), at `placement` in the body's frame."""

    name: str
    body: int
    placement: Transform


Handles = Frame | tuple[Frame, ...]
"""A frame, or several that are evaluated together."""


def each_of(handles: Handles) -> tuple[Frame, ...]:
    """Return the frames, one or more."""
    return (handles,) if isinstance(handles, Frame) else handles


class Passage(NamedTuple):
    """A body of a loop; its joint's motion adds to that around the loop with this sign."""

    i: int
    sign: float


@dataclass(frozen=True)
class Loop:
    """A joint that closes a loop, from a frame of one body to a frame of another.

    The loop runs from the predecessor inward to body `root`, where the two branches part, and
    outward to the successor: `path` has its moving bodies, each after its parent, with sign -1 on
    the predecessor's branch and +1 on the successor's.
    """

    joint: Joint
    predecessor: Frame
    successor: Frame
    root: int
    path: tuple[Passage, ...]
    data: LoopData

    @property
    def name(self) -> str:
        return self.data.name

    @property
    def rows(self) -> int:
        """Return the number of equations: degrees of freedom that the joint removes."""
        return 6 - self.joint.nv

    @property
    def bodies(self) -> tuple[int, ...]:
        """The bodies whose joints move around the loop."""
        return tuple(i for i, _ in self.path)


class Step(NamedTuple):
    """One body as an algorithm meets it."""

    i: int
    p: int
    joint: Joint
    I: RigidInertia


# The tree ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """A kinematic tree, the loops that close it, and the couplings between its coordinates.

    A parent's number is below its children's. Body frames are chosen for cheap arithmetic (the
    joint's axis is z); users see links and frames, by name. source: what it was built from.
    rotors: bodies without inertia, numbered after all others, whose joints have the armature that
    several joints of the tree turn together. An algorithm meets them as any other body.
    """

    name: str
    bodies: tuple[Body, ...]
    frames: Mapping[str, Frame]
    gravity_vector: Vector
    source: Description
    notes: tuple[str, ...] = field(default=(), compare=False)
    loops: tuple[Loop, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    rotors: tuple[Body, ...] = ()
    idle: tuple[str, ...] = field(default=(), compare=False)
    """Joints that move no inertia without loops, so that the tree's mass matrix is singular"""
    carriers: Mapping[int, int] = field(default_factory=dict)
    """Carrier of each body that turns relative to a body other than its parent (`passes.py`)"""
    mimic: bool = field(default=True, compare=False)
    """True if mimic joints follow their leaders, if there are any."""
    lossless: bool = False
    """True if damping and friction are ignored, including those of tendons and fluid."""
    load_slopes: Callable[[], "LoadSlopes"] | None = field(default=None, compare=False, repr=False)
    """Derivatives of the joint loads by positions and velocities, at a position"""
    on_step: Callable[[], None] | None = field(default=None, compare=False, repr=False)
    """Called before each body that an algorithm meets on its way outward or inward"""

    @cached_property
    def mimics(self) -> bool:
        """Return True if mimic joints have no coordinates."""
        return any(body.data.mimic is not None and not body.owns for body in self.bodies)

    @cached_property
    def parts(self) -> tuple[Body, ...]:
        """All parts that an algorithm visits, by number: the bodies, then the rotors."""
        return (*self.bodies, *self.rotors)

    @cached_property
    def timed(self) -> bool:
        """Return True if it depends on time through a joint or a coupling."""
        return bool(self.driven) or any(coupling.data.timed for coupling in self.couplings)

    @cached_property
    def driven(self) -> tuple[int, ...]:
        """The bodies whose joints are driven in time, in the order of the file."""
        return tuple(i for i in self.in_file_order if self.bodies[i].drive is not None)

    def at(self, t: Number) -> "Model":
        """Return the mechanism at a time (s, or a symbol); itself if it does not depend on time."""
        if not self.timed:
            return self
        bodies = (
            replace(body, drive=replace(body.drive, t=t)) if body.drive else body
            for body in self.bodies
        )
        couplings = (replace(coupling, t=t) for coupling in self.couplings)
        return replace(self, bodies=tuple(bodies), couplings=tuple(couplings))

    @property
    def gravity(self) -> Motion:
        """Gravity as a spatial acceleration of the world's frame."""
        return Motion(Vector.zero(), self.gravity_vector)

    def outward(self) -> Iterator[Step]:
        """Yield the bodies from the root to the tips."""
        return self._steps(enumerate(self.parts))

    def inward(self) -> Iterator[Step]:
        """Yield the bodies from the tips to the root."""
        return self._steps(reversed(list(enumerate(self.parts))))

    def _steps(self, numbered: Iterable[tuple[int, Body]]) -> Iterator[Step]:
        for i, body in numbered:
            if self.on_step:
                self.on_step()
            yield Step(i, body.parent, body.joint, body.inertia)

    def frictionless(self, *, damped: bool = False) -> "Model":
        """Return the mechanism without friction, and without damping unless `damped`."""
        bodies = []
        for body in self.bodies:
            joint, none = body.joint, Vector.zero(body.joint.nv)
            damping = joint.damping if damped else none
            bodies.append(replace(body, joint=replace(joint, damping=damping, friction=none)))
        return replace(self, bodies=tuple(bodies), lossless=not damped)

    def bearing(self, loads: Mapping[int, Vector]) -> "Model":
        """Return the model with given joint loads (`Joint.load`), by body."""
        bodies = tuple(
            replace(body, joint=replace(body.joint, load=loads[i]))
            for i, body in enumerate(self.bodies)
        )
        return replace(self, bodies=bodies)

    def weightless(self) -> "Model":
        """Return the same mechanism without gravity and joint loads."""
        none = {i: Vector.zero(body.joint.nv) for i, body in enumerate(self.bodies)}
        light = replace(self, gravity_vector=Vector.zero(), load_slopes=None)
        return light.bearing(none) if self.loaded else light

    @cached_property
    def loaded(self) -> bool:
        """Return True if springs, tendons, compensated weight or fluid act on its joints."""
        source = self.source
        parts: tuple[JointData | RotorData, ...] = (*source.joints, *source.rotors)
        springs = (part.stiffness for part in parts)
        return (
            any(not isinstance(k, float | int) or k != 0.0 for k in springs)
            or any(rotor.damping for rotor in source.rotors)
            or any(link.lifted for link in source.links)
            or source.fluid is not None
        )

    def bare(self) -> "Model":
        """Return the same mechanism without rotors."""
        return replace(self, rotors=())

    def support(self, i: int) -> tuple[int, ...]:
        """Return the bodies between body i and the world, i first."""
        path = []
        while i != WORLD:
            path.append(i)
            i = self.parts[i].parent
        return tuple(path)

    @cached_property
    def children(self) -> dict[int, tuple[int, ...]]:
        """Children of each body and of the world."""
        found: dict[int, list[int]] = {i: [] for i in range(WORLD, len(self.bodies))}
        for i, body in enumerate(self.bodies):
            found[body.parent].append(i)
        return {i: tuple(carried) for i, carried in found.items()}

    def subtree(self, i: int) -> tuple[int, ...]:
        """Return body i and all bodies it carries, each after its parent (the set nu(i))."""
        found = [i]
        for body in found:
            found += self.children[body]
        return tuple(found)

    @cached_property
    def limbs(self) -> list[list[int]]:
        """Bodies of each chain that ends without a branch; bodies inward of a branch are trunk."""
        trunk: set[int] = set()
        for i in range(len(self.bodies) - 1, -1, -1):
            below = self.children[i]
            if len(below) > 1 or trunk.intersection(below):
                trunk.add(i)
        found: dict[int, list[int]] = {}
        for i, body in enumerate(self.bodies):
            if i not in trunk:
                found[i] = found.pop(body.parent, [])
                found[i].append(i)
        return sorted(found.values())

    @property
    def floating(self) -> bool:
        """Return True if the whole tree is attached by one free joint: a floating base."""
        roots = self.children[WORLD]
        root = self.bodies[roots[0]] if len(roots) == 1 else None
        return root is not None and root.owns and root.joint.floating

    def frame(self, name: str) -> Frame:
        """Return a frame by name; links are frames too."""
        if not isinstance(name, str):
            raise ArgumentError("E-MODEL-033", f"a frame must be a name, not {name!r}")
        if name not in self.frames:
            problem = f"no frame {name!r}"
            part = f"robot {self.name!r}"
            raise ModelError("E-MODEL-034", problem, suggest(name, self.frames), part=part)
        return self.frames[name]

    # Where coordinates lie: in the order of the joints in the file ---------------------------

    @cached_property
    def in_file_order(self) -> tuple[int, ...]:
        """All bodies, in the order in which the file has their joints."""
        rank = {joint.name: k for k, joint in enumerate(self.source.joints)}
        return tuple(sorted(range(len(self.bodies)), key=lambda i: rank[self.bodies[i].data.name]))

    @cached_property
    def in_tree_order(self) -> tuple[int, ...]:
        """The bodies whose joints own coordinates, parents first (no fill-in when factored)."""
        return tuple(i for i, body in enumerate(self.bodies) if body.owns)

    @cached_property
    def movers(self) -> tuple[int, ...]:
        """The bodies whose joints own coordinates, in the order of the coordinates."""
        return tuple(i for i in self.in_file_order if self.bodies[i].owns)

    def mover(self, joint: str) -> int:
        """Return the body whose joint has this name and owns coordinates."""
        part, joint = f"robot {self.name!r}", a_name("a joint", joint)
        i = next((i for i, body in enumerate(self.bodies) if body.data.name == joint), WORLD)
        if i == WORLD:
            names = (self.bodies[i].data.name for i in self.movers)
            problem = f"there is no joint {joint!r} with coordinates"
            remedy = f"use one of {', '.join(map(repr, names))}"
            raise ModelError("E-MODEL-037", problem, remedy, part=part)
        body = self.bodies[i]
        if body.drive is not None:
            problem = f"joint {joint!r} has no coordinates, because its motion is prescribed"
            remedy = "use a robot in which the joint is free"
            raise ModelError("E-MODEL-035", problem, remedy, part=part)
        if body.follow is not None:
            leader = self.bodies[body.follow.leader].data.name
            problem = f"joint {joint!r} has no coordinates, because it mimics {leader!r}"
            remedy = "name the leader, or load the robot with mimic=False"
            raise ModelError("E-MODEL-036", problem, remedy, part=part)
        return i

    @cached_property
    def position_slices(self) -> dict[int, slice]:
        return slices((i, self.bodies[i].joint.nq) for i in self.movers)

    @cached_property
    def velocity_slices(self) -> dict[int, slice]:
        return slices((i, self.bodies[i].joint.nv) for i in self.movers)

    @cached_property
    def nq(self) -> int:
        return sum(self.bodies[i].joint.nq for i in self.movers)

    @cached_property
    def nv(self) -> int:
        return sum(self.bodies[i].joint.nv for i in self.movers)

    @property
    def closure(self) -> Closure:
        """Solution method of the loops; a robot chooses it when dynamics is first needed."""
        assert self.source.closure is not None, "this mechanism has no closure chosen"
        return self.source.closure

    @property
    def independent(self) -> tuple[int, ...]:
        """The velocity coordinates that the closure leaves independent."""
        return tuple(k for k in range(self.nv) if k not in self.closure.dependent)

    @property
    def constraints(self) -> tuple[Loop | Coupling, ...]:
        """All constraints between coordinates: the loops, then the couplings."""
        return (*self.loops, *self.couplings)

    @property
    def steady_rows(self) -> list[float]:
        """1 for each equation of loops and couplings that does not depend on time, else 0."""
        loops = [1.0] * sum(loop.rows for loop in self.loops)
        return loops + [float(each.steady) for each in self.couplings for _ in range(each.rows)]

    @cached_property
    def holonomic_rows(self) -> tuple[bool, ...]:
        """True for each equation of loops and couplings that constrains positions."""
        loops = (True,) * sum(loop.rows for loop in self.loops)
        return sum((coupling.holonomic for coupling in self.couplings), loops)

    @property
    def rolls(self) -> tuple[str, ...]:
        """Names of the nonholonomic constraints, which constrain velocities alone."""
        return tuple(each.name for each in self.couplings if not all(each.holonomic))

    @property
    def loop_rows(self) -> int:
        """The number of equations of all loops and couplings."""
        return sum(constraint.rows for constraint in self.constraints)

    def positions(self, flat: Sequence[Number]) -> dict[int, Vector]:
        """Return every joint's coordinates from the flat vector q; followers from their leaders."""
        own = {i: Vector(tuple(flat[s])) for i, s in self.position_slices.items()}
        found = {}
        for i, body in enumerate(self.parts):
            if body.turned:  # nothing depends on its angle
                found[i] = body.joint.neutral()
            elif body.drive is not None:
                found[i] = body.drive.position()
            elif body.follow is not None:
                leader, ratio, offset = body.follow
                found[i] = own[leader] * ratio + Vector.of(offset)
            else:
                found[i] = own[i]
        return found

    def velocities(self, flat: Sequence[Number], order: int = 0) -> dict[int, Vector]:
        """Return every joint's rate: order 1 velocity, 2 acceleration, 0 step (none if driven)."""
        own = {i: Vector(tuple(flat[s])) for i, s in self.velocity_slices.items()}
        return self.followed(own, order)

    def followed(self, own: Mapping[int, Vector], order: int = 0) -> dict[int, Vector]:
        """Return every joint's rate of an order from the rates of independent joints."""
        found: dict[int, Vector] = {}
        for i, body in enumerate(self.parts):
            if body.turned:
                drift = body.drift if order == 2 else 0.0
                found[i] = Vector.of(sum((found[j][k] * r for j, k, r in body.geared), drift))
            elif body.drive is not None:
                found[i] = body.drive.rate(body.joint, order)
            elif body.follow is not None:
                found[i] = own[body.follow.leader] * body.follow.ratio
            else:
                found[i] = own[i]
        return found

    def undriven(self, order: int) -> dict[int, Vector]:
        """Return every joint's rate of an order with the rates of all coordinates zero."""
        return self.followed({i: Vector.zero(self.bodies[i].joint.nv) for i in self.movers}, order)

    def at_rest(self) -> dict[int, Vector]:
        """Return zero velocity (or acceleration) of every joint."""
        return {i: Vector.zero(body.joint.nv) for i, body in enumerate(self.parts)}

    def shares(self, i: int) -> tuple[Share, ...]:
        """Return the coordinates that move joint i, by owning body; none if it is driven."""
        body = self.parts[i]
        if body.turned:
            return tuple(
                Share(owner, first + k, each * ratio)
                for j, k, ratio in body.geared
                for owner, first, each in self.shares(j)
            )
        if body.drive is not None:
            return ()
        leader, ratio, _ = body.follow or Follow(i, 1.0, 0.0)
        return (Share(leader, 0, ratio),)

    def owners(self, bodies: Iterable[int]) -> set[int]:
        """Return the bodies whose coordinates move the joints of the given bodies."""
        return {share.i for i in bodies for share in self.shares(i)}

    def efforts(self, tau: Mapping[int, Vector]) -> dict[int, Vector]:
        """Return forces on coordinates; a follower's force acts through its ratio (G' tau)."""
        total = {i: [*Vector.zero(self.bodies[i].joint.nv)] for i in self.movers}
        for i, t in tau.items():
            for owner, first, ratio in self.shares(i):
                for k, force in enumerate(t, start=first):
                    total[owner][k] = total[owner][k] + force * ratio
        return {i: Vector(tuple(entries)) for i, entries in total.items()}


def slices(sizes: Iterable[tuple[int, int]]) -> dict[int, slice]:
    """Return the slices of consecutive parts of given sizes."""
    found, start = {}, 0
    for i, size in sizes:
        found[i] = slice(start, start + size)
        start += size
    return found


def suggest(name: str, known: Mapping[str, object]) -> str:
    """Return the names that a misspelled one may mean, or else the valid names."""
    import difflib

    if not known:
        return "there are none"
    close = difflib.get_close_matches(name, known, n=3)
    if close:
        return f"did you mean {', '.join(map(repr, close))}?"
    return f"it has {', '.join(map(repr, list(known)[:12]))}" + ", ..." * (len(known) > 12)
