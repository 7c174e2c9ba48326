"""User-defined constraints and their derivatives.

A constraint is a program that maps coordinates, velocities, frames and time to residuals. A
residual that does not depend on velocities is holonomic: it constrains positions, and its
derivative constrains velocities. A residual that depends on velocities must be linear in them, and
constrains only velocities (Featherstone 2008, Eq 3.29, 3.30).
"""

from dataclasses import dataclass
from functools import cache

from chasles.expr import RULES, Arena, Number, Program, Scalar, Variable, forward
from chasles.expr import jacobian as derivatives
from chasles.mathematics.derivatives import replayed
from chasles.mathematics.linear import Matrix, Vector
from chasles.model.description import CouplingData

POSE, TWIST = 12, 6
"""Number of entries in a pose (rotation matrix by rows, then position) and in a twist."""

MOVING = ("rate", "v", "twist")
"""Names of a constraint's velocity inputs: velocities of coordinates, joints and frames."""


@dataclass(frozen=True)
class FrameState:
    """Pose and velocity of a frame, as passed to a constraint function.

    Vectors are along the world axes, in m, rad and s. The columns of `rotation` are the frame's
    axes. `velocity` is the linear velocity of the frame's origin.
    """

    position: Vector
    rotation: Matrix
    velocity: Vector
    angular_velocity: Vector

    @staticmethod
    def of(pose: tuple[Number, ...], twist: tuple[Number, ...]) -> "FrameState":
        """Create a frame state from the inputs of a constraint program.

        Parameters
        ----------
        pose : tuple of 12 Number
            Rotation matrix by rows, followed by the position (m).
        twist : tuple of 6 Number
            Angular velocity (rad/s), followed by the linear velocity of the origin (m/s), along
            the world axes.

        Returns
        -------
        state : FrameState
            The state.

        Examples
        --------
        >>> from chasles.model import FrameState
        >>> pose = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.5, 0.0, 0.0)
        >>> FrameState.of(pose, (0.0,) * 6).position
        Vector(entries=(0.5, 0.0, 0.0))
        """
        R = Matrix((tuple(pose[0:3]), tuple(pose[3:6]), tuple(pose[6:9])))
        return FrameState(Vector(pose[9:]), R, Vector(twist[3:]), Vector(twist[:3]))

    def axis(self, k: int) -> Vector:
        """Return the unit vector along an axis of the frame, in world axes.

        Parameters
        ----------
        k : {0, 1, 2}
            The axis: x, y or z.

        Returns
        -------
        axis : Vector
            Unit vector.

        Examples
        --------
        >>> from chasles.model import FrameState
        >>> pose = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.5, 0.0, 0.0)
        >>> FrameState.of(pose, (0.0,) * 6).axis(2)
        Vector(entries=(0.0, 0.0, 1.0))
        """
        return Vector(self.rotation.T.rows[k])

    def point(self, x: Number, y: Number, z: Number) -> Vector:
        """Return the world position of a point that is fixed to the frame.

        Parameters
        ----------
        x, y, z : float
            Coordinates in the frame (m).

        Returns
        -------
        point : Vector
            Position (m).

        Examples
        --------
        >>> from chasles.model import FrameState
        >>> pose = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.5, 0.0, 0.0)
        >>> FrameState.of(pose, (0.0,) * 6).point(0.25, 0.0, 1.0)
        Vector(entries=(0.75, 0.0, 1.0))
        """
        return self.position + self.rotation @ Vector.of(x, y, z)

    def velocity_at(self, point: Vector) -> Vector:
        """Return the velocity of the body-fixed point that is currently at the given position.

        Parameters
        ----------
        point : Vector
            Position in the world (m).

        Returns
        -------
        velocity : Vector
            Velocity along the world axes (m/s).

        Examples
        --------
        >>> from chasles.model import FrameState
        >>> pose = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
        >>> turning = FrameState.of(pose, (0.0, 0.0, 2.0, 0.0, 0.0, 0.0))  # 2 rad/s about z
        >>> turning.velocity_at(turning.point(0.5, 0.0, 0.0))
        Vector(entries=(0.0, 1.0, 0.0))
        """
        return self.velocity + self.angular_velocity.cross(point - self.position)

    def rates(self) -> list[Number]:
        """Return the time derivative of the pose.

        Returns
        -------
        list of Number
            Derivatives of the rotation matrix by rows (9 entries) and of the position (3 entries).

        Examples
        --------
        >>> from chasles.model import FrameState
        >>> pose = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.5, 0.0, 0.0)
        >>> state = FrameState.of(pose, (0.0,) * 6)
        >>> len(state.rates())
        12
        """
        turning = Matrix.skew(self.angular_velocity) @ self.rotation
        return [*(x for row in turning.rows for x in row), *self.velocity]


@dataclass(frozen=True)
class Coupling:
    """User-defined constraint of a model.

    `places` and `rates` contain (body, index in the body's joint) for each coordinate and velocity.
    If the constraint depends on time, `t` is the time, or a symbol for it while a function is
    traced.
    """

    places: tuple[tuple[int, int], ...]
    data: CouplingData
    t: Number | None = None
    rates: tuple[tuple[int, int], ...] = ()
    carried: tuple[int, ...] = ()
    """Indices of the bodies that move the constraint's frames."""

    @property
    def name(self) -> str:
        return self.data.name

    @property
    def rows(self) -> int:
        """Number of equations."""
        return self.data.rows

    @property
    def bodies(self) -> tuple[int, ...]:
        """Indices of the bodies whose joints affect the constraint."""
        named = (i for i, _ in (*self.places, *self.rates))
        return tuple(dict.fromkeys((*named, *self.carried)))

    @property
    def holonomic(self) -> tuple[bool, ...]:
        """Tuple with an entry per equation: True if the equation constrains positions."""
        return holonomic(self.data.residual)

    @property
    def steady(self) -> bool:
        """Return True if the constraint does no work (no prescribed velocity, no time input)."""
        psi = velocities(self.data.residual)
        drift = replayed(psi, psi.variables(Arena(RULES)) | resting(psi))
        return not self.data.timed and not any(isinstance(x, Scalar) or x for x in drift)

    def moment(self) -> list[Number]:
        """Return the time as a list, or an empty list if the constraint does not depend on time.

        Returns
        -------
        list of Number
            The time (s), or an empty list.

        Examples
        --------
        >>> import chasles
        >>> from chasles.model import gear
        >>> robot = chasles.robots.planar(2).with_couplings(gear("gear", "joint2", {"joint1": 2.0}))
        >>> robot.model.couplings[0].moment()
        []
        """
        assert self.t is not None or not self.data.timed, (
            "the time is needed to evaluate this constraint"
        )
        return [] if self.t is None else [self.t]


def holonomic(residual: Program) -> tuple[bool, ...]:
    """Return True for each residual entry that does not depend on velocities."""
    return tuple(not row & set(MOVING) for row in taken(residual))


@cache
def taken(program: Program) -> tuple[frozenset[str], ...]:
    """Return the names of the inputs that affect each output entry of a program."""
    found: list[frozenset[str]] = []
    for op, args, data in program.code:
        own = {program.inputs[data[0]].name} if op == "input" else ()
        found.append(frozenset(own).union(*(found[a] for a in args)))
    return tuple(found[r] for part in program.results for r in part)


@cache
def velocities(residual: Program) -> Program:
    """Return the program for the velocity-level residual psi.

    Holonomic residuals are differentiated with respect to time; other residuals are unchanged. The
    additional inputs are `rate` (time derivative of `q`) and `twist` (twist of `pose`). psi is
    linear in the velocities, and at zero velocity consists only of explicit time derivatives and
    prescribed velocities.
    """
    sizes = {v.name: v.size for v in residual.inputs}
    sizes |= {"rate": sizes["q"]} if "q" in sizes else {}
    sizes |= {"twist": sizes["pose"] // POSE * TWIST} if "pose" in sizes else {}
    inputs = [Variable(name, () if name == "t" else (n,)) for name, n in sizes.items()]
    arena = Arena(RULES)
    given: dict[str, list[Number]] = {
        v.name: [arena.input(v.name, k) for k in range(v.size)] for v in inputs
    }
    still = [v.name for v in residual.inputs if v.name not in MOVING]
    moved = forward(residual, still).applied(given | changes(given, still), arena)[0]
    rows = zip(holonomic(residual), moved, residual.applied(given, arena)[0], strict=True)
    psi = [change if positions else own for positions, change, own in rows]
    return Program.from_outputs("velocities", inputs, [(Variable("psi", (len(psi),)), psi)])


def changes(given: dict[str, list[Number]], names: list[str]) -> dict[str, list[Number]]:
    """Return the time derivatives d_q, d_pose and d_t of a constraint's inputs q, pose and t.

    `given` contains the values of all inputs, including `rate` and `twist`.
    """
    found = {}
    for name in names:
        if name == "q":
            found["d_q"] = given["rate"]
        elif name == "pose":
            states = frame_states(given["pose"], given["twist"])
            found["d_pose"] = [x for state in states for x in state.rates()]
        else:
            found[f"d_{name}"] = [1.0]
    return found


def frame_states(pose: list[Number], twist: list[Number]) -> list[FrameState]:
    """Split concatenated poses and twists into one state per frame."""
    count = len(pose) // POSE
    poses = [tuple(pose[POSE * k : POSE * (k + 1)]) for k in range(count)]
    twists = [tuple(twist[TWIST * k : TWIST * (k + 1)]) for k in range(count)]
    return [FrameState.of(*pair) for pair in zip(poses, twists, strict=True)]


@cache
def slopes(residual: Program) -> Program:
    """Return the program for the Jacobian of a constraint's velocity equations (`velocities`)."""
    psi = velocities(residual)
    return derivatives(psi, moving(psi), mode="reverse")


@cache
def accelerations(residual: Program) -> Program:
    """Return the program for a directional derivative of a constraint's velocity equations.

    The direction has one component for each entry of the inputs, including the time.
    """
    psi = velocities(residual)
    return forward(psi, [v.name for v in psi.inputs])


def moving(psi: Program) -> list[str]:
    """Return the names of a program's velocity inputs."""
    return [v.name for v in psi.inputs if v.name in MOVING]


def resting(program: Program) -> dict[str, list[Number]]:
    """Return zero values for the velocity inputs of a program, by input name."""
    return {v.name: [0.0] * v.size for v in program.inputs if v.name in MOVING}
