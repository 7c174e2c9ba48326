"""Contact pairs (two shapes and a contact law), and soft contacts within an integration step.

The forces and state variables of soft contacts are expressions, which become part of the program of
a step.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from chasles.errors import ArgumentError, InputError, ModelError
from chasles.expr import RULES, Arena, Number, Program, Variable
from chasles.functions.programs import program
from chasles.functions.tracing import WrenchKey
from chasles.model import Model
from chasles.model.given import settle
from chasles.motion.geometry.closed_forms import (
    Box,
    Capsule,
    Ground,
    Plane,
    Point,
    Sphere,
    applied,
    contact_axes,
    cross,
)
from chasles.motion.geometry.features import Capsules, Meeting, Polyhedra, Standing
from chasles.motion.geometry.fields import HeightField
from chasles.motion.geometry.kinematics import STILL, Carrier, result, symbols
from chasles.motion.geometry.patches import check_shapes
from chasles.motion.geometry.shapes import Body, ConvexMesh, Cylinder, Surface
from chasles.motion.laws.restitution import ImpactLaw, Newton, check_law
from chasles.motion.laws.soft import SoftContact

Numbers = Sequence[Number] | np.ndarray

MEETINGS: list[tuple[Any, Any, Any]] = [
    (Point | Box | ConvexMesh, Box | ConvexMesh, Polyhedra),
    (Capsule, Box | ConvexMesh, Capsules),
    (Cylinder, Plane | Ground, Standing),
]
"""Shapes whose contact features (corners, edges, faces) change with the motion: types of the body,
types of the surface, and class of the feature pairs.
"""

MOST_SHARED = 64
"""Maximum number of contact slots (potential contact points) that pairs can share."""


def _kind(body: Body, surface: Surface | HeightField) -> Any:
    for bodies, surfaces, kind in MEETINGS:
        if isinstance(body, bodies) and isinstance(surface, surfaces):
            return kind
    return None


def meeting(body: Body, surface: Surface) -> Meeting | None:
    """Return the feature pairs of two shapes, or None if their features do not change."""
    kind = _kind(body, surface)
    return None if kind is None else kind(body, surface)


@dataclass(frozen=True)
class Rigid:
    """Contact law of rigid bodies that touch, separate, slide, stick and collide.

    Attributes
    ----------
    friction : float
        Coulomb friction coefficient mu (dimensionless).
    restitution : float
        Coefficient of restitution e in Newton's impact law (dimensionless). Impacts have the same
        friction coefficient. Impulses are first applied at all points where bodies approach each
        other. This is repeated for bodies that approach as a result, so that an impact propagates
        through Newton's cradle. "time-stepping" solves the impacts of a step together instead,
        unless `sequence` is True: one ball that hits four touching balls with e = 1 rebounds at 0.6
        times its speed, and the four balls leave together.
    impact : ImpactLaw, optional
        Single-point impact law to use instead of Newton's law. The law is applied to one point at a
        time.
    torsion, rolling : float
        Coefficients of torsional and rolling friction (m). The largest moments about the normal and
        the tangents are these lengths times the normal force. Only the integrator "time-stepping"
        supports torsion and rolling.
    sequence : bool
        True to solve the impacts of one time step one after another, so that an impact propagates
        through touching bodies as with other integrators. Only "time-stepping" uses this option.
    """

    friction: float = 0.0
    restitution: float = 0.0
    impact: ImpactLaw | None = None
    torsion: float = 0.0
    rolling: float = 0.0
    sequence: bool = False

    def __post_init__(self) -> None:
        if fault := settle(self):
            raise InputError("E-CONTACT-042", fault, part=type(self).__name__)
        if not isinstance(self.sequence, bool):
            problem = f"`sequence` must be True or False, not {self.sequence!r:.60}"
            raise InputError("E-CONTACT-095", problem, part="Rigid")
        if self.impact is not None:
            check_law("Rigid: impact", self.impact)

    @property
    def impact_law(self) -> ImpactLaw:
        """Impact law: `impact` if given, otherwise Newton's law with friction."""
        return self.impact or Newton(self.restitution, self.friction)


@dataclass(frozen=True)
class Compliant:
    """Contact law of compliant ground for "time-stepping", stable for any step size.

    The normal force at a depth d is stiffness (d + relaxation ddot), but never negative.

    Attributes
    ----------
    stiffness : float
        Stiffness (N/m).
    relaxation : float
        Relaxation time (s), the ratio of damping to stiffness.
    friction, torsion, rolling : float
        Friction coefficients, as in `Rigid`.
    """

    stiffness: float
    relaxation: float = 0.0
    friction: float = 0.0
    torsion: float = 0.0
    rolling: float = 0.0

    restitution: ClassVar[float] = 0.0
    sequence: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if fault := settle(self):
            raise InputError("E-CONTACT-090", fault, part=type(self).__name__)


class Spot(NamedTuple):
    """Point where a body may touch another body, and the relative motion at this point.

    Attributes
    ----------
    point : np.ndarray
        Position in the world (m).
    axes : np.ndarray
        Two tangents and the normal as rows; the normal points from the other body to this one.
    gap : Number
        Distance (m), negative for penetration.
    rate, slip : Number or list[Number]
        Velocity of this body relative to the other body at the point (m/s): normal component, and
        components along the tangents.
    """

    point: np.ndarray
    axes: np.ndarray
    gap: Number
    rate: Number
    slip: list[Number]


@dataclass(frozen=True)
class Pair:
    """Body and surface that may touch, and the contact law between them.

    Each point of the body (`body.balls()`) is a separate contact, numbered in the order of the
    pairs. A pair of rigid bodies with contact points that vary with the motion counts as one
    contact.

    Attributes
    ----------
    body, surface : shape
        Shapes of `chasles.contact`.
    law : Rigid, SoftContact or Compliant
        Contact law.
    shared : int
        Number of shared contact slots (potential contact points) in "time-stepping". All pairs with
        the same law and the same positive number share these slots; in each step, only the closest
        points can touch. Other integrators ignore this option. Default: 0, no sharing.
    from_file : bool
        True for the pairs that `file_pairs` returns. If any pair is from a file, the default
        integrator of `simulate` is "time-stepping".
    """

    body: Body
    surface: Surface | HeightField
    law: Rigid | SoftContact | Compliant
    shared: int = 0
    from_file: bool = field(default=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        flat = Plane() if isinstance(self.surface, HeightField) else self.surface
        check_shapes("Pair", self.body, flat)
        if type(self.shared) is not int or not 0 <= self.shared <= MOST_SHARED:
            problem = (
                f"`shared` must be an integer from 0 to {MOST_SHARED}, not {self.shared!r:.60}"
            )
            raise InputError("E-CONTACT-091", problem, part="Pair")
        if not isinstance(self.law, Rigid | SoftContact | Compliant):
            wanted = "Rigid(...), Compliant(...) or SoftContact(...)"
            problem = f"the law must be {wanted}, not {self.law!r:.60}"
            raise ArgumentError("E-CONTACT-043", problem, part="Pair")
        if isinstance(self.law, SoftContact) and self.law.tangents != 2:
            problem = "SoftContact(tangents=1) is valid only for points that move in a plane"
            raise InputError("E-CONTACT-044", problem, "use SoftContact(tangents=2)", part="Pair")
        if self.body.frame == self.surface.frame:
            where = "in the world" if self.body.frame is None else f"on frame {self.body.frame!r}"
            problem = (
                f"`body` and `surface` are both {where} and cannot move relative to each other"
            )
            remedy = "attach the body or the surface to another frame"
            raise InputError("E-CONTACT-045", problem, remedy, part="Pair")
        shapes = f"{type(self.body).__name__} on {type(self.surface).__name__}"
        if isinstance(self.law, SoftContact) and not self.traced:
            problem = f"{shapes} has no fixed contact points, but soft contact laws require them"
            remedy = "use a Plane or Ground as the surface, and any body except a Cylinder"
            raise InputError("E-CONTACT-046", problem, remedy, part="Pair")
        supported = self.traced or self.varies or self.round or self.on_field
        if not (supported or isinstance(self.body, Point | Sphere)):
            problem = f"the pair {shapes} is not supported in simulation"
            remedy = (
                "replace the shape with a ConvexMesh, replace a Cylinder with its balls(), "
                "or pass a Capsule as `body`, not as `surface`"
            )
            raise InputError("E-CONTACT-047", problem, remedy, part="Pair")

    @property
    def traced(self) -> bool:
        """Return True for a body of balls whose distance to the surface has a closed form."""
        if isinstance(self.surface, Cylinder | ConvexMesh | HeightField):
            return False
        flat = isinstance(self.surface, Plane | Ground) and not isinstance(self.body, Cylinder)
        return flat or isinstance(self.body, Point | Sphere)

    @property
    def round(self) -> bool:
        """Return True for a capsule on a sphere or capsule, which only time stepping supports."""
        return isinstance(self.body, Capsule) and isinstance(self.surface, Sphere | Capsule)

    @property
    def on_field(self) -> bool:
        """Return True if the surface is a height field, which only time stepping supports."""
        return isinstance(self.surface, HeightField)

    @property
    def varies(self) -> bool:
        """Return True if the contact points move on both the body and the surface."""
        return _kind(self.body, self.surface) is not None

    @property
    def frames(self) -> tuple[str | None, str | None]:
        """Frames of the body and the surface; None denotes the world."""
        return self.body.frame, self.surface.frame

    @property
    def points(self) -> int:
        """Number of contact points; 1 if the contact point is not fixed to either shape."""
        return 1 if self.varies else len(self.body.balls())

    def spots(self, over: Carrier, under: Carrier) -> list[Spot]:
        """Return the points where contact is possible.

        Parameters
        ----------
        over : FrameMotion
            Motion of the body's frame.
        under : FrameMotion
            Motion of the surface's frame.

        Returns
        -------
        spots : list of Spot
            One spot for each ball of the body. The tangents rotate with the surface's frame.

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> from chasles.rollouts import FrameMotion
        >>> pair = contact.Pair(contact.Sphere("tip", 0.1), contact.Plane(), contact.Rigid())
        >>> pose = np.eye(4)
        >>> pose[2, 3] = 0.5
        >>> tip, world = (FrameMotion.of(T, np.zeros(6), "") for T in (pose, np.eye(4)))
        >>> float(pair.spots(tip, world)[0].gap)
        0.4
        """
        assert not isinstance(self.surface, Cylinder | ConvexMesh | HeightField), "refused above"
        found = []
        for at, radius in self.body.balls():
            c, rate = over.point(at)
            distance, n, _ = self.surface.near(*under.seen(c, rate))
            axes = contact_axes(n) @ under.R.T
            point = c - radius * axes[2]
            *slip, rate = applied(axes, over.velocity(point) - under.velocity(point))
            found.append(Spot(point, axes, distance - radius, rate, slip))
        return found


def given_pairs(function: str, contacts: Any) -> tuple[Any, ...]:
    """Return the given contact pairs as a tuple.

    Parameters
    ----------
    function : str
        Name of the function, for messages.
    contacts : sequence of Pair or None
        Contact pairs.

    Returns
    -------
    pairs : tuple of Pair
        The pairs; empty for None.

    Raises
    ------
    ArgumentError
        If `contacts` is not a sequence.

    Examples
    --------
    >>> from chasles import rollouts
    >>> rollouts.given_pairs("rollout", None)
    ()
    """
    try:
        return () if contacts is None else tuple(contacts)
    except TypeError:
        problem = f"`contacts` must be a list of pairs, not {contacts!r:.80}"
        raise ArgumentError("E-MOTION-006", problem, "pass a list: [pair]", part=function) from None


# Soft contact ------------------------------------------------------------------------------------


class Pressed(NamedTuple):
    """Response of all soft contacts in a state, as expressions.

    Attributes
    ----------
    spots : list of Spot
        Contact points and their relative motion.
    forces : list of list of Number
        Forces (N) in contact axes: tangents, then normal.
    rates : list of Number
        Rates of the state variables of all contact laws.
    touching : list of Number
        1 for points at which a force can act, else 0.
    """

    spots: list[Spot]
    forces: list[list[Number]]
    rates: list[Number]
    touching: list[Number]


@dataclass(frozen=True)
class Placed:
    """Contact pairs of a robot, with contact points as expressions."""

    model: Model
    pairs: tuple[Pair, ...]

    @cached_property
    def frames(self) -> tuple[str, ...]:
        """Frames on which contact forces act."""
        return tuple(sorted({f for pair in self.pairs for f in pair.frames if f is not None}))

    def spots(self, arena: Arena, q: Numbers, qd: Numbers) -> list[Spot]:
        """Return all contact points in a state of the robot.

        Parameters
        ----------
        arena : Arena
            Arena of the expressions.
        q : sequence of Number, length nq
            Joint positions.
        qd : sequence of Number, length nv
            Joint velocities.

        Returns
        -------
        spots : list of Spot
            Contact points in the order of the pairs, in the world.

        Examples
        --------
        >>> import chasles
        >>> from chasles import contact, expr, rollouts
        >>> law = contact.SoftContact(contact.HuntCrossley(1e5, 0.1))
        >>> ball = contact.Pair(contact.Sphere("tip", 0.1), contact.Plane(), law)
        >>> contacts = rollouts.Contacts(chasles.robots.planar(1).model, (ball,))
        >>> arena = expr.Arena(expr.RULES)
        >>> q, qd = arena.input("q", 0), arena.input("qd", 0)
        >>> contacts.spots(arena, [q], [qd])[0].gap
        add(-0.1, sin(q[0]))
        """
        motions = self._motions(arena, q, qd)
        return [s for p in self.pairs for s in p.spots(*(motions[f] for f in p.frames))]

    @cached_property
    def _programs(self) -> dict[str, list[Program]]:
        functions = ("forward_kinematics", "frame_velocity")
        return {f: [program(self.model, name, frame=f) for name in functions] for f in self.frames}

    def _motions(self, arena: Arena, q: Numbers, qd: Numbers) -> dict[str | None, Carrier]:
        motions: dict[str | None, Carrier] = {None: STILL}
        for frame, programs in self._programs.items():
            pose, velocity = (result(traced, arena, {"q": q, "qd": qd}) for traced in programs)
            motions[frame] = Carrier.of(pose, velocity, frame)
        return motions


@dataclass(frozen=True)
class Contacts(Placed):
    """All soft contact pairs of a robot, with their forces as expressions."""

    def __post_init__(self) -> None:
        for pair in self.pairs:
            if not isinstance(getattr(pair, "law", None), SoftContact):
                problem = f"{pair!r:.80} has no soft contact law"
                remedy = "use contact.SoftContact(...), or simulate with 'time-stepping'"
                raise ModelError("E-MOTION-007", problem, remedy, part="contacts")
            for frame in pair.frames:
                if frame is not None:
                    self.model.frame(frame)

    @property
    def keys(self) -> tuple[WrenchKey, ...]:
        """Keys of the contact wrenches, which act at frame origins and are in world axes."""
        return tuple(WrenchKey(frame) for frame in self.frames)

    @cached_property
    def laws(self) -> list[SoftContact]:
        """Contact law of every point."""
        laws = [pair.law for pair in self.pairs for _ in range(pair.points)]
        return [law for law in laws if isinstance(law, SoftContact)]

    @property
    def states(self) -> int:
        """Total number of state variables of all contact points."""
        return sum(law.states for law in self.laws)

    def pressed(
        self, arena: Arena, q: Numbers, qd: Numbers, state: Numbers, touching: Numbers | None = None
    ) -> Pressed:
        """Return contact forces and rates of state variables for a given state of the robot.

        Parameters
        ----------
        arena : Arena
            Arena of the expressions.
        q : sequence of Number, length nq
            Joint positions.
        qd : sequence of Number, length nv
            Joint velocities.
        state : sequence of Number, length states
            State variables of all laws.
        touching : sequence of Number, optional
            Mask of points at which a force can act. Default: the points that touch in this state.

        Returns
        -------
        pressed : Pressed
            Contact points, forces in contact axes (N), rates of state variables, and contact mask.

        Examples
        --------
        >>> import chasles
        >>> from chasles import contact, expr, rollouts
        >>> law = contact.SoftContact(contact.HuntCrossley(1e5, 0.1))
        >>> ball = contact.Pair(contact.Sphere("tip", 0.1), contact.Plane(), law)
        >>> contacts = rollouts.Contacts(chasles.robots.planar(1).model, (ball,))
        >>> found = contacts.pressed(expr.Arena(expr.RULES), [0.0], [0.0], [])
        >>> len(found.forces[0])
        3
        """
        spots, states = self.spots(arena, q, qd), self.split(state)
        parts = list(zip(self.laws, spots, states, strict=True))
        if touching is None:
            touching = [law.touches(z, spot.gap) for law, spot, z in parts]
        found = [
            law.response(z, spot.gap, spot.rate, spot.slip, touch)
            for (law, spot, z), touch in zip(parts, touching, strict=True)
        ]
        rates = [rate for _, rates in found for rate in rates]
        return Pressed(spots, [forces for forces, _ in found], rates, list(touching))

    def wrenches(self, arena: Arena, q: Numbers, found: Pressed) -> dict[str, list[Number]]:
        """Return the contact wrench on each frame.

        Parameters
        ----------
        arena : Arena
            Arena of the expressions.
        q : sequence of Number, length nq
            Joint positions.
        found : Pressed
            Result of `pressed`.

        Returns
        -------
        wrenches : dict from str to list of Number
            Moment about the frame origin (N m) and force (N), along the world axes. The keys are
            names of program inputs, such as "f_ext['tip']".

        Examples
        --------
        >>> import chasles
        >>> from chasles import contact, expr, rollouts
        >>> law = contact.SoftContact(contact.HuntCrossley(1e5, 0.1))
        >>> ball = contact.Pair(contact.Sphere("tip", 0.1), contact.Plane(), law)
        >>> contacts = rollouts.Contacts(chasles.robots.planar(1).model, (ball,))
        >>> arena = expr.Arena(expr.RULES)
        >>> found = contacts.pressed(arena, [0.0], [0.0], [])
        >>> list(contacts.wrenches(arena, [0.0], found))
        ["f_ext['tip']"]
        """
        motions = self._motions(arena, q, [0.0] * self.model.nv)
        total = {frame: np.zeros(6) for frame in self.frames}
        sides = [pair.frames for pair in self.pairs for _ in range(pair.points)]
        spots = zip(sides, found.spots, self.forces(found), strict=True)
        for (body, surface), spot, force in spots:
            for frame, f in ((body, force), (surface, -force)):
                if frame is not None:
                    moment = cross(spot.point - motions[frame].o, f)
                    total[frame] = total[frame] + np.concatenate([moment, f])
        return {f"f_ext[{frame!r}]": wrench.tolist() for frame, wrench in total.items()}

    def forces(self, found: Pressed) -> list[np.ndarray]:
        """Return the force on the body at every point.

        Parameters
        ----------
        found : Pressed
            Result of `pressed`.

        Returns
        -------
        forces : list of ndarray, shape (3,)
            Forces along the world axes (N).

        Examples
        --------
        >>> import chasles
        >>> from chasles import contact, expr, rollouts
        >>> law = contact.SoftContact(contact.HuntCrossley(1e5, 0.1))
        >>> ball = contact.Pair(contact.Sphere("tip", 0.1), contact.Plane(), law)
        >>> contacts = rollouts.Contacts(chasles.robots.planar(1).model, (ball,))
        >>> found = contacts.pressed(expr.Arena(expr.RULES), [0.0], [0.0], [])
        >>> len(contacts.forces(found))
        1
        """
        return [f @ spot.axes for f, spot in zip(found.forces, found.spots, strict=True)]

    def advanced(
        self, arena: Arena, state: Numbers, found: Pressed, q: Numbers, h: float
    ) -> list[Number]:
        """Return the state variables of the contact laws after a step.

        Parameters
        ----------
        arena : Arena
            Arena of the expressions.
        state : sequence of Number, length states
            State variables at the beginning of the step.
        found : Pressed
            Result of `pressed` at the beginning; its forces act during the step.
        q : sequence of Number, length nq
            Joint positions at the end of the step.
        h : float
            Step size (s).

        Returns
        -------
        state : list of Number
            State variables at the end.

        Examples
        --------
        >>> import chasles
        >>> from chasles import contact, expr, rollouts
        >>> law = contact.SoftContact(contact.SoftSurface(1e5, 1e3))
        >>> ball = contact.Pair(contact.Sphere("tip", 0.1), contact.Plane(), law)
        >>> contacts = rollouts.Contacts(chasles.robots.planar(1).model, (ball,))
        >>> arena, state = expr.Arena(expr.RULES), [0.0] * contacts.states
        >>> found = contacts.pressed(arena, [0.0], [0.0], state)
        >>> len(contacts.advanced(arena, state, found, [0.0], 1e-3)) == contacts.states
        True
        """
        ended = self._ended(arena, state, found, q)
        return [z for law, part, f, gap in ended for z in law.advanced(part, f, gap, h)]

    def settled(self, arena: Arena, state: Numbers, found: Pressed, q: Numbers) -> list[Number]:
        """Correct integrated state variables so that they agree with the gaps and the forces.

        Parameters
        ----------
        arena : Arena
            Arena of the expressions.
        state : sequence of Number, length states
            Integrated state variables.
        found : Pressed
            Result of `pressed`.
        q : sequence of Number, length nq
            Joint positions at which the gaps are evaluated.

        Returns
        -------
        state : list of Number
            Corrected state variables.

        Examples
        --------
        >>> import chasles
        >>> from chasles import contact, expr, rollouts
        >>> law = contact.SoftContact(contact.SoftSurface(1e5, 1e3))
        >>> ball = contact.Pair(contact.Sphere("tip", 0.1), contact.Plane(), law)
        >>> contacts = rollouts.Contacts(chasles.robots.planar(1).model, (ball,))
        >>> arena, state = expr.Arena(expr.RULES), [0.0] * contacts.states
        >>> found = contacts.pressed(arena, [0.0], [0.0], state)
        >>> len(contacts.settled(arena, state, found, [0.0])) == contacts.states
        True
        """
        ended = self._ended(arena, state, found, q)
        return [z for law, part, f, gap in ended for z in law.settled(part, f, gap)]

    def program(self, h: float) -> Program:
        """Return a program that computes forces, gaps, and the contact states after a time h.

        Parameters
        ----------
        h : float
            Time (s), during which q is constant.

        Returns
        -------
        program : Program
            Inputs are q, qd and the states. Outputs are forces (points, 3) along the world axes
            (N), gaps (points,) (m) and the states after h.

        Notes
        -----
        The program contains all contact data of a step, so its hash identifies the contacts.

        Examples
        --------
        >>> import chasles
        >>> from chasles import contact, rollouts
        >>> law = contact.SoftContact(contact.HuntCrossley(1e5, 0.1))
        >>> ball = contact.Pair(contact.Sphere("tip", 0.1), contact.Plane(), law)
        >>> program = rollouts.Contacts(chasles.robots.planar(1).model, (ball,)).program(1e-3)
        >>> [(v.name, v.shape) for v in program.outputs[:2]]
        [('forces', (1, 3)), ('gaps', (1,))]
        """
        arena, points = Arena(RULES), len(self.laws)
        sizes = {"q": self.model.nq, "qd": self.model.nv, "states": self.states}
        q, qd, state = (symbols(arena, name, (n,)) for name, n in sizes.items())
        found = self.pressed(arena, q, qd, state)
        outputs = [
            (Variable("forces", (points, 3)), np.ravel(self.forces(found)).tolist()),
            (Variable("gaps", (points,)), [spot.gap for spot in found.spots]),
            (Variable("after", (self.states,)), self.advanced(arena, state, found, q, h)),
        ]
        inputs = [Variable(name, (n,)) for name, n in sizes.items()]
        return Program.from_outputs("contacts", inputs, outputs)

    def split(self, state: Numbers) -> list[Numbers]:
        """Split the state variables of all contact points into those of each point.

        Parameters
        ----------
        state : sequence of Number, length states
            State variables of all laws.

        Returns
        -------
        states : list of sequence
            State variables of each point.

        Examples
        --------
        >>> import chasles
        >>> from chasles import contact, rollouts
        >>> law = contact.SoftContact(contact.SoftSurface(1e5, 1e3))
        >>> ball = contact.Pair(contact.Sphere("tip", 0.1), contact.Plane(), law)
        >>> contacts = rollouts.Contacts(chasles.robots.planar(1).model, (ball,))
        >>> contacts.split([0.0])
        [[0.0]]
        """
        parts, start = [], 0
        for law in self.laws:
            parts.append(state[start : start + law.states])
            start += law.states
        return parts

    def _ended(
        self, arena: Arena, state: Numbers, found: Pressed, q: Numbers
    ) -> list[tuple[SoftContact, Numbers, Numbers, Number]]:
        spots = self.spots(arena, q, [0.0] * self.model.nv)
        gaps = [spot.gap for spot in spots]
        return list(zip(self.laws, self.split(state), found.forces, gaps, strict=True))
