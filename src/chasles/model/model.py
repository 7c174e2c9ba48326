"""The tree that algorithms walk: bodies in regular numbering, frames, and where coordinates lie."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from chasles.expr import Number
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Motion, RigidInertia, Transform
from chasles.model.closure import Closure
from chasles.model.couplings import Coupling
from chasles.model.description import Description, JointData, LoopData, ModelError
from chasles.model.joints import Free, Joint

WORLD = -1
"""The number of the world: the parent of root bodies, a sentinel whose zeros fold away."""


class Follow(NamedTuple):
    """A coordinate without freedom of its own: ratio times that of body `leader`, plus offset."""

    leader: int
    ratio: float
    offset: float


@dataclass(frozen=True)
class Body:
    """A moving body: everything rigidly connected, with one joint to its parent body."""

    name: str
    parent: int
    joint: Joint
    inertia: RigidInertia
    data: JointData
    follow: Follow | None = None


@dataclass(frozen=True)
class Frame:
    """A named frame: fixed to a body (or to the world), at `placement` in the body's frame."""

    name: str
    body: int
    placement: Transform


Handles = Frame | tuple[Frame, ...]
"""A frame, or several that are asked about together."""


def each_of(handles: Handles) -> tuple[Frame, ...]:
    """The frames, one or more."""
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
        """The number of equations: freedoms that the joint takes away."""
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


@dataclass(frozen=True)
class Model:
    """A kinematic tree, the loops that close it, and the couplings between its coordinates.

    A parent's number is below its children's.

    Body frames are chosen for cheap arithmetic (the joint's axis is z); what users see are links
    and frames, by name. `source` is the description it was built from.
    """

    name: str
    bodies: tuple[Body, ...]
    frames: Mapping[str, Frame]
    gravity_vector: Vector
    source: Description
    notes: tuple[str, ...] = field(default=(), compare=False)
    loops: tuple[Loop, ...] = ()
    couplings: tuple[Coupling, ...] = ()

    @property
    def gravity(self) -> Motion:
        """Gravity as a spatial acceleration of the world's frame."""
        return Motion(Vector.zero(), self.gravity_vector)

    def outward(self) -> Iterator[Step]:
        """Bodies from the root to the tips."""
        for i, body in enumerate(self.bodies):
            yield Step(i, body.parent, body.joint, body.inertia)

    def inward(self) -> Iterator[Step]:
        """Bodies from the tips to the root."""
        return reversed(list(self.outward()))

    def frictionless(self) -> "Model":
        """The same mechanism without damping and friction."""
        bodies = []
        for body in self.bodies:
            none = Vector.zero(body.joint.nv)
            bodies.append(replace(body, joint=replace(body.joint, damping=none, friction=none)))
        return replace(self, bodies=tuple(bodies))

    def support(self, i: int) -> tuple[int, ...]:
        """The bodies between body i and the world, i first."""
        path = []
        while i != WORLD:
            path.append(i)
            i = self.bodies[i].parent
        return tuple(path)

    @cached_property
    def children(self) -> dict[int, tuple[int, ...]]:
        """The bodies that each body carries by a joint of their own, the world included."""
        found: dict[int, list[int]] = {i: [] for i in range(WORLD, len(self.bodies))}
        for i, body in enumerate(self.bodies):
            found[body.parent].append(i)
        return {i: tuple(carried) for i, carried in found.items()}

    def subtree(self, i: int) -> tuple[int, ...]:
        """The bodies that body i carries, itself first, each after its parent (the set nu(i))."""
        found = [i]
        for body in found:
            found += self.children[body]
        return tuple(found)

    @property
    def floating(self) -> bool:
        """Whether the whole tree hangs on one free joint: a floating base."""
        roots = self.children[WORLD]
        return len(roots) == 1 and isinstance(self.bodies[roots[0]].joint, Free)

    def frame(self, name: str) -> Frame:
        """A frame by name; links are frames too."""
        if not isinstance(name, str):
            raise TypeError(f"a frame is given by its name, not as {name!r}")
        if name not in self.frames:
            raise ModelError(
                f"robot {self.name!r}: no frame {name!r}; {suggest(name, self.frames)}"
            )
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
        return tuple(i for i, body in enumerate(self.bodies) if body.follow is None)

    @cached_property
    def movers(self) -> tuple[int, ...]:
        """The bodies whose joints own coordinates, in the order of the coordinates."""
        return tuple(i for i in self.in_file_order if self.bodies[i].follow is None)

    def mover(self, joint: str) -> int:
        """The body whose joint has this name and owns coordinates."""
        for i, body in enumerate(self.bodies):
            if body.data.name == joint:
                if body.follow is None:
                    return i
                leader = self.bodies[body.follow.leader].data.name
                raise ModelError(
                    f"robot {self.name!r}: joint {joint!r} has no coordinates, because it mimics "
                    f"{leader!r}; name that one, or load the robot with mimic=False"
                )
        names = (self.bodies[i].data.name for i in self.movers)
        raise ModelError(
            f"robot {self.name!r}: no joint {joint!r} with coordinates; it has "
            f"{', '.join(map(repr, names))}"
        )

    @cached_property
    def position_slices(self) -> dict[int, slice]:
        return _slices((i, self.bodies[i].joint.nq) for i in self.movers)

    @cached_property
    def velocity_slices(self) -> dict[int, slice]:
        return _slices((i, self.bodies[i].joint.nv) for i in self.movers)

    @property
    def nq(self) -> int:
        return sum(self.bodies[i].joint.nq for i in self.movers)

    @property
    def nv(self) -> int:
        return sum(self.bodies[i].joint.nv for i in self.movers)

    @property
    def closure(self) -> Closure:
        """How the loops are solved; a robot chooses it when dynamics are first asked for."""
        assert self.source.closure is not None, "this mechanism has no closure chosen"
        return self.source.closure

    @property
    def independent(self) -> tuple[int, ...]:
        """The velocity coordinates that the closure leaves independent."""
        return tuple(k for k in range(self.nv) if k not in self.closure.dependent)

    @property
    def constraints(self) -> tuple[Loop | Coupling, ...]:
        """All that has equations between coordinates: the loops, then the couplings."""
        return (*self.loops, *self.couplings)

    @property
    def loop_rows(self) -> int:
        """The number of equations of all loops and couplings."""
        return sum(constraint.rows for constraint in self.constraints)

    def positions(self, flat: Sequence[Number]) -> dict[int, Vector]:
        """Every joint's coordinates from the flat vector q; followers from their leaders."""
        own = {i: Vector(tuple(flat[s])) for i, s in self.position_slices.items()}
        return {
            i: own[i] if f is None else own[f.leader] * f.ratio + Vector.of(f.offset)
            for i, f in enumerate(body.follow for body in self.bodies)
        }

    def velocities(self, flat: Sequence[Number]) -> dict[int, Vector]:
        """Every joint's velocity (or acceleration) from the flat vector."""
        return self.followed({i: Vector(tuple(flat[s])) for i, s in self.velocity_slices.items()})

    def followed(self, own: Mapping[int, Vector]) -> dict[int, Vector]:
        """Every joint's velocity (or acceleration) from those of the coordinates' owners."""
        return {
            i: own[i] if f is None else own[f.leader] * f.ratio
            for i, f in enumerate(body.follow for body in self.bodies)
        }

    def at_rest(self) -> dict[int, Vector]:
        """Zero velocity (or acceleration) of every joint."""
        return {i: Vector.zero(body.joint.nv) for i, body in enumerate(self.bodies)}

    def owner(self, i: int) -> tuple[int, float]:
        """The body whose coordinate moves joint i, and the ratio between the two."""
        follow = self.bodies[i].follow
        return (i, 1.0) if follow is None else (follow.leader, follow.ratio)

    def efforts(self, tau: Mapping[int, Vector]) -> dict[int, Vector]:
        """Forces on the coordinates' owners: a follower's force acts through its ratio (G' tau)."""
        total = {i: Vector.zero(self.bodies[i].joint.nv) for i in self.movers}
        for i, t in tau.items():
            leader, ratio = self.owner(i)
            total[leader] = total[leader] + t * ratio
        return total


def _slices(sizes: Iterator[tuple[int, int]]) -> dict[int, slice]:
    found, start = {}, 0
    for i, size in sizes:
        found[i] = slice(start, start + size)
        start += size
    return found


def suggest(name: str, known: Mapping[str, object]) -> str:
    """The names that a misspelt one may mean, or those there are."""
    import difflib

    close = difflib.get_close_matches(name, known, n=3)
    return (
        f"did you mean {', '.join(map(repr, close))}?"
        if close
        else (
            f"it has {', '.join(map(repr, list(known)[:12]))}"
            + (", ..." if len(known) > 12 else "")
        )
    )
