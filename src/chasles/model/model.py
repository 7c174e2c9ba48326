"""Models of mechanisms: numbered bodies, joints, frames, loops and the order of coordinates."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from chasles.errors import ArgumentError, ModelError, shown
from chasles.expr import Number
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.spatial import Motion, RigidInertia, Transform
from chasles.model.constraints import Coupling
from chasles.model.couplings import Drive
from chasles.model.description import (
    Closure,
    Description,
    JointData,
    Limits,
    LoopData,
    RotorData,
)
from chasles.model.given import a_name
from chasles.model.joints import Joint
from chasles.model.limits import narrowed
from chasles.names import one_of, suggest

WORLD = -1
"""Index of the world, which is the parent of root bodies."""

# Components of a model ---------------------------------------------------------------------------


class Follow(NamedTuple):
    """Coordinate of a mimic joint: ratio * (leader's coordinate) + offset."""

    leader: int
    ratio: float
    offset: float


LoadSlopes = tuple[dict[tuple[int, int], Matrix], dict[tuple[int, int], Matrix]]
"""Derivatives of spring and fluid torques with respect to q and qd.

The torques are those that balance the springs and the fluid forces. Each derivative is a mapping
from pairs of bodies (i, j) to matrix blocks.
"""


class Share(NamedTuple):
    """Contribution of a degree of freedom to the velocity of a joint, rotor or tendon.

    The contribution is `ratio` times entry `k` of the joint velocity of body `i`. If all degrees of
    freedom of the joint contribute, `k` is the index of the first one.
    """

    i: int
    k: int
    ratio: Number


class Stretch(NamedTuple):
    """A straight tendon segment from point r on body a to point s on body b.

    `r` and `s` are in body frames (m). `factor` is the weight of the segment in the tendon length.
    """

    a: int
    r: Vector
    b: int
    s: Vector
    factor: float


@dataclass(frozen=True)
class Body:
    """A moving body and its joint, which may follow another joint or have a prescribed motion.

    A rotor has no coordinate and no link; `geared` lists the degrees of freedom that drive it. If
    the rotor of a tendon has a `path`, `algorithms.spatial.tendons` computes `geared` for each
    configuration, and also `drift`, the acceleration of the rotor at zero joint accelerations.
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
        """Return True if the body is a rotor, whose angle is determined by other joints."""
        return bool(self.geared or self.path)

    @property
    def owns(self) -> bool:
        """Return True if the joint has its own coordinates."""
        return self.follow is None and self.drive is None and not self.turned


@dataclass(frozen=True)
class Frame:
    """A named frame fixed to a body or the world, at `placement` in the body's frame."""

    name: str
    body: int
    placement: Transform


Handles = Frame | tuple[Frame, ...]
"""One frame, or several frames that are evaluated together."""


def each_of(handles: Handles) -> tuple[Frame, ...]:
    """Return one or several frames as a tuple."""
    return (handles,) if isinstance(handles, Frame) else handles


class Passage(NamedTuple):
    """A body in a loop, and the sign of its joint velocity in the sum around the loop."""

    i: int
    sign: float


@dataclass(frozen=True)
class Loop:
    """A joint that closes a loop between frames on two bodies.

    From the predecessor, the loop runs toward the base until it reaches body `root`, where the two
    branches meet. From `root`, the loop runs to the successor. `path` lists the moving
    bodies of the loop, parents first, with sign -1 on the predecessor's branch and +1 on the
    successor's branch.
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
        """Number of equations, which is the number of degrees of freedom that the joint removes."""
        return 6 - self.joint.nv

    @property
    def bodies(self) -> tuple[int, ...]:
        """Indices of the bodies whose joints are part of the loop."""
        return tuple(i for i, _ in self.path)


class Step(NamedTuple):
    """Index, parent, joint and inertia of a body, for one step of a recursion."""

    i: int
    p: int
    joint: Joint
    I: RigidInertia


# Model -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """A kinematic tree with loops and couplings.

    Parents have lower indices than their children. Body frames are chosen to reduce the number of
    operations (the joint axis is z); users refer to links and frames by name. `source` is the
    description from which the model was built.

    `rotors` are massless bodies, numbered after all other bodies. The joint of a rotor has an
    armature and is driven by several joints of the tree. Algorithms treat rotors like other bodies.
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
    """Names of joints that move no mass; if there are any, the tree's mass matrix is singular."""
    carriers: Mapping[int, int] = field(default_factory=dict)
    """Carrier of each body in a chain of parallel revolute joints, except the chain's first body.

    The carrier is the parent of the first body.
    """
    mimic: bool = field(default=True, compare=False)
    """True if mimic joints follow their leaders."""
    lossless: bool = False
    """True if damping, friction and fluid forces are ignored."""
    load_slopes: Callable[[], "LoadSlopes"] | None = field(default=None, compare=False, repr=False)
    """Function that returns derivatives of passive generalized forces with respect to q and qd."""
    on_step: Callable[[], None] | None = field(default=None, compare=False, repr=False)
    """Function that a recursion over the bodies calls before it processes each body."""

    def __repr__(self) -> str:
        parts = {"loops": self.loops, "couplings": self.couplings, "rotors": self.rotors}
        more = "".join(f", {name} {len(some)}" for name, some in parts.items() if some)
        sizes = f"{len(self.bodies)} bodies, nq {self.nq}, nv {self.nv}{more}"
        return f"<Model {shown(repr(self.name))}: {sizes}>"

    @cached_property
    def mimics(self) -> bool:
        """Return True if mimic joints follow their leaders and have no own coordinates."""
        return any(body.data.mimic is not None and not body.owns for body in self.bodies)

    @cached_property
    def parts(self) -> tuple[Body, ...]:
        """All moving bodies, followed by all rotors, in the order of their indices."""
        return (*self.bodies, *self.rotors)

    @cached_property
    def timed(self) -> bool:
        """Return True if a joint or a coupling depends on time."""
        return bool(self.driven) or any(coupling.data.timed for coupling in self.couplings)

    @cached_property
    def driven(self) -> tuple[int, ...]:
        """Indices of bodies whose joints have prescribed motions, in file order."""
        return tuple(i for i in self.in_file_order if self.bodies[i].drive is not None)

    def at(self, t: Number) -> "Model":
        """Return the model at time t, or `self` if the model does not depend on time.

        Parameters
        ----------
        t : Number
            Time (s), which may be a symbol.

        Returns
        -------
        Model
            The model at time t.

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(2).model
        >>> model.at(0.5) is model
        True
        """
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
        """Gravity as a spatial acceleration, in the world frame."""
        return Motion(Vector.zero(), self.gravity_vector)

    def outward(self) -> Iterator[Step]:
        """Yield the bodies from the root to the leaves.

        Returns
        -------
        iterator of Step
            Index, parent, joint and inertia of each body.

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(2).model
        >>> [step[0] for step in model.outward()]
        [0, 1]
        """
        return self._steps(enumerate(self.parts))

    def inward(self) -> Iterator[Step]:
        """Yield the bodies from the leaves to the root.

        Returns
        -------
        iterator of Step
            Index, parent, joint and inertia of each body.

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(2).model
        >>> [step[0] for step in model.inward()]
        [1, 0]
        """
        return self._steps(reversed(list(enumerate(self.parts))))

    def _steps(self, numbered: Iterable[tuple[int, Body]]) -> Iterator[Step]:
        for i, body in numbered:
            if self.on_step:
                self.on_step()
            yield Step(i, body.parent, body.joint, body.inertia)

    def frictionless(self, *, damped: bool = False) -> "Model":
        """Return the model without dry friction and damping.

        Parameters
        ----------
        damped : bool, optional
            Keep the damping and remove only dry friction.

        Returns
        -------
        Model
            The model without friction.

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(2).model
        >>> model.frictionless().nv
        2
        """
        bodies = []
        for body in self.bodies:
            joint, none = body.joint, Vector.zero(body.joint.nv)
            damping = joint.damping if damped else none
            bodies.append(replace(body, joint=replace(joint, damping=damping, friction=none)))
        return replace(self, bodies=tuple(bodies), lossless=not damped)

    def bearing(self, loads: Mapping[int, Vector]) -> "Model":
        """Return a copy with joint loads that balance springs and other passive forces.

        See `Joint.load`.

        Parameters
        ----------
        loads : mapping from int to Vector
            Joint load of each body (N m or N).

        Returns
        -------
        Model
            Copy of the model with these joint loads.

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(2).model
        >>> model.bearing(model.at_rest()).nv
        2
        """
        bodies = tuple(
            replace(body, joint=replace(body.joint, load=loads[i]))
            for i, body in enumerate(self.bodies)
        )
        return replace(self, bodies=bodies)

    def weightless(self) -> "Model":
        """Return the model without gravity, spring, tendon and fluid forces.

        Returns
        -------
        Model
            The model without gravity and without joint loads (`Joint.load`).

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(2).model
        >>> list(model.weightless().gravity_vector)
        [0.0, 0.0, 0.0]
        """
        none = {i: Vector.zero(body.joint.nv) for i, body in enumerate(self.bodies)}
        light = replace(self, gravity_vector=Vector.zero(), load_slopes=None)
        return light.bearing(none) if self.loaded else light

    @cached_property
    def loaded(self) -> bool:
        """Return True if springs, tendons, gravity compensation or fluid forces act on joints."""
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
        """Return the model without rotors.

        Returns
        -------
        Model
            The model without rotors.

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(2).model
        >>> model.bare().nv
        2
        """
        return replace(self, rotors=())

    def support(self, i: int) -> tuple[int, ...]:
        """Return the bodies from body i to the world, starting with i.

        Parameters
        ----------
        i : int
            Index of the body.

        Returns
        -------
        tuple of int
            Indices of bodies.

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(2).model
        >>> model.support(1)
        (1, 0)
        """
        path = []
        while i != WORLD:
            path.append(i)
            i = self.parts[i].parent
        return tuple(path)

    @cached_property
    def children(self) -> dict[int, tuple[int, ...]]:
        """Child bodies of each body and of the world, by index."""
        found: dict[int, list[int]] = {i: [] for i in range(WORLD, len(self.bodies))}
        for i, body in enumerate(self.bodies):
            found[body.parent].append(i)
        return {i: tuple(carried) for i, carried in found.items()}

    def subtree(self, i: int) -> tuple[int, ...]:
        """Return body i and its descendants, each after its parent (nu(i) in Featherstone 2008).

        Parameters
        ----------
        i : int
            Index of the body.

        Returns
        -------
        tuple of int
            Indices of bodies.

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(2).model
        >>> model.subtree(0)
        (0, 1)
        """
        found = [i]
        for body in found:
            found += self.children[body]
        return tuple(found)

    @cached_property
    def limbs(self) -> list[list[int]]:
        """Bodies of each unbranched chain that ends in a leaf. All other bodies form the trunk."""
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
    def base(self) -> int:
        """Index of the floating base, or WORLD if no single free joint carries the whole tree."""
        roots = self.children[WORLD]
        root = self.bodies[roots[0]] if len(roots) == 1 else None
        free = root is not None and root.owns and root.joint.floating
        return roots[0] if free else WORLD

    @property
    def floating(self) -> bool:
        """Return True if the robot has a floating base: a free joint carries the whole tree."""
        return self.base != WORLD

    def frame(self, name: str) -> Frame:
        """Return the frame with the given name. Every link has a frame with the link's name.

        Parameters
        ----------
        name : str
            Name of the frame or link.

        Returns
        -------
        Frame
            The frame, with its body and its placement on the body.

        Raises
        ------
        ModelError
            If there is no frame with this name.
        ArgumentError
            If `name` is not a string.

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(2).model
        >>> model.frame('tip').body
        1
        """
        if not isinstance(name, str):
            raise ArgumentError("E-MODEL-033", f"`frame` must be a name, not {name!r}")
        if name not in self.frames:
            problem = f"there is no frame {name!r}"
            part = f"robot {self.name!r}"
            raise ModelError("E-MODEL-034", problem, suggest(name, self.frames), part=part)
        return self.frames[name]

    # Indices of coordinates, in the order of the joints in the file --------------------------

    @cached_property
    def in_file_order(self) -> tuple[int, ...]:
        """All bodies, in the order of their joints in the file."""
        rank = {joint.name: k for k, joint in enumerate(self.source.joints)}
        return tuple(sorted(range(len(self.bodies)), key=lambda i: rank[self.bodies[i].data.name]))

    @cached_property
    def in_tree_order(self) -> tuple[int, ...]:
        """Bodies whose joints have coordinates, with parents before their children."""
        return tuple(i for i, body in enumerate(self.bodies) if body.owns)

    @cached_property
    def movers(self) -> tuple[int, ...]:
        """Bodies whose joints have coordinates, in the order of the coordinates."""
        return tuple(i for i in self.in_file_order if self.bodies[i].owns)

    @cached_property
    def limits(self) -> Mapping[int, Limits]:
        """Limits of the joints that have their own coordinates, by body.

        The limits of a joint are narrowed so that the joints that mimic it stay within theirs.
        """
        return self._limits[0]

    @cached_property
    def conflicts(self) -> tuple[int, ...]:
        """Bodies moved by mimic joints with limits that the leading joints cannot satisfy.

        These limits are ignored.
        """
        return self._limits[1]

    @cached_property
    def _limits(self) -> tuple[Mapping[int, Limits], tuple[int, ...]]:
        found = {i: self.bodies[i].data.limits for i in self.movers}
        conflicts = []
        for i in self.in_file_order:
            body, follow = self.bodies[i], self.bodies[i].follow
            if follow is None:
                continue
            limits = narrowed(found[follow.leader], body.data.limits, follow.ratio, follow.offset)
            if limits is None:
                conflicts.append(i)
            else:
                found[follow.leader] = limits
        return found, tuple(conflicts)

    def mover(self, joint: str) -> int:
        """Return the index of the body that a joint moves.

        The joint must have its own coordinates: it must not be fixed, mimic another joint, or have
        a prescribed motion.

        Parameters
        ----------
        joint : str
            Name of the joint.

        Returns
        -------
        int
            Index of the body.

        Raises
        ------
        ModelError
            If there is no such joint, if its motion is prescribed, or if it mimics another joint.
        ArgumentError
            If `joint` is not a string.

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(2).model
        >>> model.mover('joint2')
        1
        """
        part, joint = f"robot {self.name!r}", a_name("a joint", joint)
        i = next((i for i, body in enumerate(self.bodies) if body.data.name == joint), WORLD)
        if i == WORLD:
            names = (self.bodies[i].data.name for i in self.movers)
            problem = f"{joint!r} is not a joint with coordinates"
            raise ModelError("E-MODEL-037", problem, one_of(joint, names), part=part)
        body = self.bodies[i]
        if body.drive is not None:
            problem = f"joint {joint!r} has no coordinates, because its motion is prescribed"
            remedy = "use a robot in which the joint's motion is not prescribed"
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
        """Elimination order for loop equations, chosen when a dynamics function is first called."""
        assert self.source.closure is not None, "this mechanism has no closure chosen"
        return self.source.closure

    @property
    def independent(self) -> tuple[int, ...]:
        """Indices of the velocity coordinates that are independent in `closure`."""
        return tuple(k for k in range(self.nv) if k not in self.closure.dependent)

    @property
    def constraints(self) -> tuple[Loop | Coupling, ...]:
        """All loops, followed by all couplings."""
        return (*self.loops, *self.couplings)

    @property
    def steady_rows(self) -> list[float]:
        """For each loop and coupling equation, 1 if the constraint force does no work, else 0."""
        loops = [1.0] * sum(loop.rows for loop in self.loops)
        return loops + [float(each.steady) for each in self.couplings for _ in range(each.rows)]

    @cached_property
    def holonomic_rows(self) -> tuple[bool, ...]:
        """Booleans, one for each loop and coupling equation: True if it constrains positions."""
        loops = (True,) * sum(loop.rows for loop in self.loops)
        return sum((coupling.holonomic for coupling in self.couplings), loops)

    @property
    def rolls(self) -> tuple[str, ...]:
        """Names of the nonholonomic constraints, which constrain only velocities."""
        return tuple(each.name for each in self.couplings if not all(each.holonomic))

    @property
    def loop_rows(self) -> int:
        """Total number of loop and coupling equations."""
        return sum(constraint.rows for constraint in self.constraints)

    def positions(self, flat: Sequence[Number]) -> dict[int, Vector]:
        """Return the coordinates of every joint, including mimic joints, from the vector q.

        Parameters
        ----------
        flat : sequence of Number
            Coordinates q of the model (nq).

        Returns
        -------
        dict from int to Vector
            Joint coordinates of each body.

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(2).model
        >>> model.positions([0.1, 0.2])[1]
        Vector(entries=(0.2,))
        """
        own = {i: Vector(tuple(flat[s])) for i, s in self.position_slices.items()}
        found = {}
        for i, body in enumerate(self.parts):
            if body.turned:  # the angle of a rotor has no effect
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
        """Return velocities, accelerations or displacements of all joints, including mimic joints.

        Parameters
        ----------
        flat : sequence of Number
            Velocities, accelerations or small displacements of the model (nv).
        order : int, optional
            1 for velocities, 2 for accelerations, 0 for small displacements (the default).
            Displacements of joints with prescribed motions are zero.

        Returns
        -------
        dict from int to Vector
            Joint rates of each body.

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(2).model
        >>> model.velocities([0.1, 0.2], 1)[1]
        Vector(entries=(0.2,))
        """
        own = {i: Vector(tuple(flat[s])) for i, s in self.velocity_slices.items()}
        return self.followed(own, order)

    def followed(self, own: Mapping[int, Vector], order: int = 0) -> dict[int, Vector]:
        """Return the rates of every joint, given the rates of joints with coordinates.

        Parameters
        ----------
        own : mapping from int to Vector
            Rates of joints with coordinates, by body.
        order : int, optional
            1 for velocities, 2 for accelerations, 0 for small displacements.

        Returns
        -------
        dict from int to Vector
            Joint rates of each body.

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(2).model
        >>> sorted(model.followed(model.at_rest(), 1))
        [0, 1]
        """
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
        """Return joint velocities or accelerations due to prescribed motion alone.

        All other joints are at rest.

        Parameters
        ----------
        order : int
            Order of the rates: 1 for velocities, 2 for accelerations.

        Returns
        -------
        dict from int to Vector
            Joint velocities (rad/s or m/s) or accelerations (rad/s2 or m/s2), by body.

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(2).model
        >>> model.undriven(1)[0]
        Vector(entries=(0.0,))
        """
        return self.followed({i: Vector.zero(self.bodies[i].joint.nv) for i in self.movers}, order)

    def at_rest(self) -> dict[int, Vector]:
        """Return zero velocities (or accelerations) for all joints.

        Returns
        -------
        dict from int to Vector
            Zero vector for each body's joint.

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(2).model
        >>> model.at_rest()[0]
        Vector(entries=(0.0,))
        """
        return {i: Vector.zero(body.joint.nv) for i, body in enumerate(self.parts)}

    def shares(self, i: int) -> tuple[Share, ...]:
        """Return the degrees of freedom that move joint i (none if its motion is prescribed).

        Parameters
        ----------
        i : int
            Index of the joint, which is the index of the body that the joint moves.

        Returns
        -------
        tuple of Share
            For each degree of freedom: its body, its index in the joint of this body, and the
            velocity of joint i per unit velocity.

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(2).model
        >>> len(model.shares(1))
        1
        """
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
        """Return the bodies whose joint coordinates move the joints of the given bodies.

        A coupled joint moves with the coordinates of other joints.

        Parameters
        ----------
        bodies : iterable of int
            Indices of bodies.

        Returns
        -------
        set of int
            Indices of bodies.

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(2).model
        >>> model.owners([1])
        {1}
        """
        return {share.i for i in bodies for share in self.shares(i)}

    def efforts(self, tau: Mapping[int, Vector]) -> dict[int, Vector]:
        """Convert joint torques to generalized forces.

        The torque of a mimic joint is multiplied by the joint's ratio and added to the generalized
        force of its leader.

        Parameters
        ----------
        tau : mapping from int to Vector
            Torque or force of each joint, including mimic joints, by body (N m or N).

        Returns
        -------
        dict from int to Vector
            Generalized force of each body that has coordinates.

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(2).model
        >>> sorted(model.efforts(model.at_rest()))
        [0, 1]
        """
        total = {i: [*Vector.zero(self.bodies[i].joint.nv)] for i in self.movers}
        for i, t in tau.items():
            for owner, first, ratio in self.shares(i):
                for k, force in enumerate(t, start=first):
                    total[owner][k] = total[owner][k] + force * ratio
        return {i: Vector(tuple(entries)) for i, entries in total.items()}


def slices(sizes: Iterable[tuple[int, int]]) -> dict[int, slice]:
    """Return the slices of consecutive segments with the given sizes."""
    found, start = {}, 0
    for i, size in sizes:
        found[i] = slice(start, start + size)
        start += size
    return found
