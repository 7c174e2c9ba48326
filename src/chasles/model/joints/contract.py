"""Interface of joint types, with default implementations.

A joint defines how its body moves relative to the parent body. `transform(q)` transforms motion
vectors from the parent body's frame to the body's frame. `subspace(q)` is S in the body's frame;
the joint velocity is S @ qd. `subspace_rates(q, rates)` returns S and its time derivatives in that
frame, and `bias(q, qd)` is the first derivative times qd. Every type is defined for its natural
axes (z, or x then y); for other axes, `placement` includes a rotation. If the joint closes a loop,
`fit(X)` returns its coordinates, and the columns of `constraint(q)`, T, span the forces that the
joint transmits (T' S = 0).

A type must define `nq`, `nv`, `units` and `motion`. Other members have defaults, including exact
derivatives. Define `subspace` as well to save operations: the default differentiates `motion`, and
the derivative of a rotation is not simplified to an axis. If S is constant in the body's frame,
derive the type from `Steady`. If the columns of S are unit vectors along or about the natural axes,
derive the type from `Natural`, which needs only these columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar, Literal, NamedTuple

from chasles.errors import UnsupportedError
from chasles.expr import Number, cos, less, sin, sqrt
from chasles.mathematics.derivatives import by_step, by_time
from chasles.mathematics.linear import Matrix, Symmetric, Vector, diagonal, invert_symmetric
from chasles.mathematics.rotations import about, quaternion_from_matrix
from chasles.mathematics.spatial import (
    Force,
    Forces,
    Motion,
    Motions,
    RigidInertia,
    Transform,
    group_drift,
    turn_about_z,
)

UNITS = tuple(Motion.of(*(float(i == k) for i in range(6))) for k in range(6))
WX, WY, WZ, VX, VY, VZ = UNITS
"""Unit rotations about x, y and z, and unit translations along x, y and z."""
LOADS = tuple(Force.of(*unit) for unit in UNITS)
MX, MY, MZ, FX, FY, FZ = LOADS
"""Unit moments about x, y and z, and unit forces along x, y and z."""
X, Y, Z = (Vector(row) for row in Matrix.identity().rows)

_NONE = Vector(())

Bounds = Literal["needed", "allowed", "none"]


class Numbers(NamedTuple):
    """Names of a joint's coordinates and velocities, in order.

    "qw qx qy qz" is a quaternion, and "cos sin" is the cosine and sine of the angle. w and v are
    the angular and linear velocity along the body's axes. Capital letters denote components along
    the parent's axes.
    """

    position: str
    velocity: str


class Part(NamedTuple):
    """One of the joints in series that are equivalent to a compound joint.

    `kind` is the joint type, and `axis` is the index of its axis among the natural axes x, y and z
    of the compound joint. For a translation that is coupled to a rotation, `ratio` is the name of
    the field with the distance per radian. `coordinate` is the index of its coordinate among those
    of the compound joint, if the parts are listed in another order.
    """

    kind: str
    axis: int
    ratio: str = ""
    coordinate: int | None = None


class Slopes(NamedTuple):
    """Derivatives of a joint's motion with respect to its coordinates, in the body frame.

    All derivatives are zero if S is constant.

    Attributes
    ----------
    subspace
        Derivatives of S, one for each coordinate.
    velocity, acceleration
        Derivatives of the velocity S qd and of the acceleration S qdd + c_J, with one column for
        each coordinate. c_J is the bias acceleration (`Joint.bias`).
    bias
        Derivative of c_J with respect to qd, with one column for each coordinate.
    """

    subspace: tuple[Motions, ...]
    velocity: Motions
    acceleration: Motions
    bias: Motions


@dataclass(frozen=True)
class Joint:
    """Base class of joint types, with nq coordinates q and nv velocities qd.

    Attributes
    ----------
    placement
        Pose of the joint frame in the parent body, at q = neutral.
    armature
        Rotor inertia added to the diagonal of the mass matrix.
    damping, friction
        Viscous damping coefficient and dry friction of each degree of freedom.
    stiffness
        Spring stiffness of each degree of freedom, with rest position `rest`.
    load
        Generalized force that balances springs, tendons, gravity compensation and fluid forces in
        the current state, for each degree of freedom.
    """

    placement: Transform = field(default_factory=Transform.identity)
    armature: Vector = _NONE
    damping: Vector = _NONE
    friction: Vector = _NONE
    stiffness: Vector = _NONE
    rest: Vector = _NONE
    load: Vector = _NONE

    kind: ClassVar[str] = "custom"
    nq: ClassVar[int]
    nv: ClassVar[int]
    units: ClassVar[tuple[str, ...]]
    """Unit of each entry of q: "rad", "m", or "1" for a quaternion, which must come first."""
    data: ClassVar[tuple[str, ...]] = ()
    """Fields of the joint type whose values are copied from `JointData`."""
    additive: ClassVar[bool] = True
    """True if velocities are the time derivatives of q and `integrate` adds them to q."""
    holonomic: ClassVar[bool] = True
    """True if the joint constrains positions, not only velocities."""
    path: ClassVar[tuple[int, ...]] = ()
    """Indices of coordinates that depend on the path of the motion; `difference` ignores them."""

    # Properties of the type, for file formats and other libraries
    along: ClassVar[str] = "z"
    """Joint frame axes along `axis` and `second_axis`, such as "z" or "xy"; "" for no axis."""
    askew: ClassVar[str] = ""
    """Remedy in the error message for joint axes that are not perpendicular."""
    flips: ClassVar[bool] = False
    """True if exchanging the frames and reversing the axis does not change the joint."""
    floating: ClassVar[bool] = False
    """True for a joint with six degrees of freedom, described by a quaternion and a position."""
    hinge: ClassVar[bool] = False
    """True if the joint allows only rotation about one axis."""
    pivots: ClassVar[bool] = False
    """True if the joint allows only rotation about one point."""
    unfelt: ClassVar[str] = ""
    """Parts of the body's inertia that do not affect the motion of the joint.

    "m" is the mass, "h" is the first moment along z, "k" is a common term in the moments of inertia
    about x and y, and "I" is the whole rotational inertia.
    """
    bounds: ClassVar[Bounds] = "allowed"
    """Position limits: "needed" (as in URDF), "allowed", or "none" (unlimited rotation)."""
    twin: ClassVar[str] = ""
    """Joint type that differs from this joint type only in its limits, or "" if there is none.

    For example, the twin of "revolute" is "continuous".
    """
    names: ClassVar[Mapping[str, str]] = {}
    """Names of the type in file formats. All names are read, and the first one is written."""
    numbers: ClassVar[Numbers] = Numbers("", "")
    """Names of the coordinates, for `chasles.conventions`."""
    elsewhere: ClassVar[Mapping[str, Numbers | str]] = {}
    """Coordinates of this joint type in each library, or the reason why it cannot be converted."""
    series: ClassVar[tuple[Part, ...]] = ()
    """Equivalent joints in series, from parent to child."""
    coordinate_series: ClassVar[tuple[Part, ...]] = ()
    """Joints in series with the same coordinates but other velocities, if `series` is empty.

    They replace the joint if one of its coordinates is prescribed.
    """

    @property
    def velocity_units(self) -> tuple[str, ...]:
        """Unit of each velocity without "/s": "rad" or "m"."""
        turns = ("rad",) * 3 if "1" in self.units else ()
        return (*turns, *(unit for unit in self.units if unit != "1"))[: self.nv]

    def motion(self, q: Vector) -> Transform:
        """Return the joint transform from the predecessor frame to the successor frame.

        Parameters
        ----------
        q : Vector
            Coordinates of the joint.

        Returns
        -------
        Transform
            Transform of coordinates from the predecessor to the successor frame.

        Raises
        ------
        UnsupportedError
            If the joint type does not define `motion`.

        Examples
        --------
        >>> import chasles
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> q = joint.neutral()
        >>> joint.motion(q).r
        Vector(entries=(0.0, 0.0, 0.0))
        """
        raise UnsupportedError("E-JOINT-015", f"{type(self).__name__} does not define motion(q)")

    def transform(self, q: Vector) -> Transform:
        """Return the coordinate transform from the parent body's frame to the body's frame.

        Parameters
        ----------
        q : Vector
            Coordinates of the joint.

        Returns
        -------
        Transform
            Transform of coordinates from the parent to this body.

        Raises
        ------
        UnsupportedError
            If the joint type does not define `motion`.

        Examples
        --------
        >>> import chasles
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> q = joint.neutral()
        >>> joint.transform(q).r
        Vector(entries=(0.0, 0.0, 0.0))
        """
        XT, XJ = self.placement, self.motion(q)
        return Transform(XT.E.then(XJ.E), XT.r + XT.E.T @ XJ.r)

    def turn(self, q: Vector) -> Vector:
        """Return the orientation of the successor frame in the predecessor frame as a quaternion.

        Parameters
        ----------
        q : Vector
            Coordinates of the joint.

        Returns
        -------
        quaternion : Vector
            Unit quaternion (w, x, y, z); continuous in q for revolute joints and for joints with
            quaternion coordinates.

        Raises
        ------
        UnsupportedError
            If the joint type does not define `motion`.

        Examples
        --------
        >>> import chasles
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> joint.turn(joint.neutral())
        Vector(entries=(1.0, 0.0, 0.0, 0.0))
        """
        if "1" not in self.units:
            return quaternion_from_matrix(self.motion(q).R)
        turn = Vector(q.entries[:4])
        return turn * (1.0 / sqrt(turn.dot(turn)))

    def transmission(
        self, q: Vector, gear: Vector, in_parent: bool
    ) -> tuple[Number, tuple[Number, ...]]:
        """Return the length and the moment arms of an actuator's transmission.

        Parameters
        ----------
        q : Vector
            Coordinates of the joint.
        gear : Vector
            Gear ratio, followed by zeros. For joints with quaternion coordinates, the entries are
            along the axes of the body.
        in_parent : bool
            If True, the entries are along the axes of the parent instead.

        Returns
        -------
        length : Number
            Length of the transmission (rad or m).
        arms : tuple of Number
            Derivative of the length's rate with respect to each joint velocity.

        Examples
        --------
        >>> import chasles
        >>> from chasles.mathematics.linear import Vector
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> joint.transmission(Vector((0.5,)), Vector((100.0, 0.0, 0.0, 0.0, 0.0, 0.0)), False)
        (50.0, (100.0,))
        """
        return q[0] * gear[0], (gear[0],)

    # Motion, computed from `motion` and `integrate` by default ----------------------------------

    def subspace(self, q: Vector) -> Motions:
        """Return S, whose columns span the joint's motion subspace, in body coordinates.

        S is defined by dX/dt = -(S qd) x X, where X is the joint transform (Featherstone 2008, Eq
        2.45). For its rotation matrix E and translation r, this means Edot = -w x E and
        rdot = E' v, where w and v are the angular and linear part of S qd.

        Parameters
        ----------
        q : Vector
            Coordinates of the joint.

        Returns
        -------
        Motions
            One column per degree of freedom.

        Raises
        ------
        UnsupportedError
            If the joint type does not define `motion`.

        Examples
        --------
        >>> import chasles
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> q = joint.neutral()
        >>> len(joint.subspace(q).columns)
        1
        """

        def pose(step: Vector, q: Vector) -> list[Number]:
            X = self.motion(self.integrate(q, step))
            return [*(e for row in X.E.matrix().rows for e in row), *X.r]

        E, columns = self.motion(q).E, []
        for slope in by_step(pose, self.nv, q):
            W = Matrix((tuple(slope[0:3]), tuple(slope[3:6]), tuple(slope[6:9]))) @ E.matrix().T
            w, rdot = Vector.of(-W[2, 1], -W[0, 2], -W[1, 0]), Vector.of(*slope[9:])
            columns.append(Motion(w, E @ rdot))
        return Motions(tuple(columns))

    def subspace_rates(self, q: Vector, rates: Sequence[Vector]) -> list[Motions]:
        """Return the motion subspace S and its time derivatives in the body frame.

        Parameters
        ----------
        q : Vector
            Coordinates of the joint.
        rates : sequence of Vector
            Rates of the joint: qd, qdd and so on.

        Returns
        -------
        list of Motions
            S, followed by one derivative per rate.

        Raises
        ------
        UnsupportedError
            If the joint type does not define `motion`.

        Examples
        --------
        >>> import chasles
        >>> from chasles.mathematics.linear import Vector
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> q = joint.neutral()
        >>> qd = Vector.of(2.0)
        >>> len(joint.subspace_rates(q, [qd]))
        2
        """
        return [self._last_rate(q, rates[:k]) for k in range(len(rates) + 1)]

    def _last_rate(self, q: Vector, rates: Sequence[Vector]) -> Motions:
        """Return the n-th time derivative of the subspace S from n rates (qd, qdd and so on)."""
        if not rates:
            return self.subspace(q)

        def before(t: Number, q: Vector, *rates: Vector) -> list[Number]:
            now = [rate + more * t for rate, more in pairwise(rates)]
            S = self._last_rate(self.integrate(q, rates[0] * t), now)
            return [entry for column in S.columns for entry in column]

        entries = by_time(before, q, *rates)
        return Motions(tuple(Motion.of(*entries[k : k + 6]) for k in range(0, 6 * self.nv, 6)))

    def subspace_rate(self, q: Vector, qd: Vector) -> Motions:
        """Return the time derivative of the motion subspace S in the body frame.

        Parameters
        ----------
        q : Vector
            Coordinates of the joint.
        qd : Vector
            Velocity of the joint, along the columns of S.

        Returns
        -------
        Motions
            Derivative of each column.

        Raises
        ------
        UnsupportedError
            If the joint type does not define `motion`.

        Examples
        --------
        >>> import chasles
        >>> from chasles.mathematics.linear import Vector
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> q = joint.neutral()
        >>> qd = Vector.of(2.0)
        >>> len(joint.subspace_rate(q, qd).columns)
        1
        """
        return self.subspace_rates(q, (qd,))[1]

    def bias(self, q: Vector, qd: Vector) -> Motion:
        """Return c_J, the acceleration due to the rate of change of S in the body frame.

        Parameters
        ----------
        q : Vector
            Coordinates of the joint.
        qd : Vector
            Velocity of the joint, along the columns of S.

        Returns
        -------
        Motion
            Acceleration in body coordinates.

        Raises
        ------
        UnsupportedError
            If the joint type does not define `motion`.

        Examples
        --------
        >>> import chasles
        >>> from chasles.mathematics.linear import Vector
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> q = joint.neutral()
        >>> qd = Vector.of(2.0)
        >>> joint.bias(q, qd).angular
        Vector(entries=(0.0, 0.0, 0.0))
        """
        return self.subspace_rate(q, qd) @ qd

    def bias_slopes(self, q: Vector, qd: Vector) -> Motions:
        """Return the derivatives of the bias acceleration along each degree of freedom.

        Parameters
        ----------
        q : Vector
            Coordinates of the joint.
        qd : Vector
            Velocity of the joint, along the columns of S.

        Returns
        -------
        Motions
            One column per degree of freedom.

        Raises
        ------
        UnsupportedError
            If the joint type does not define `motion`.

        Examples
        --------
        >>> import chasles
        >>> from chasles.mathematics.linear import Vector
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> q = joint.neutral()
        >>> qd = Vector.of(2.0)
        >>> len(joint.bias_slopes(q, qd).columns)
        1
        """

        def bias(step: Vector, q: Vector, qd: Vector) -> list[Number]:
            return list(self.bias(self.integrate(q, step), qd))

        return Motions(tuple(Motion.of(*slope) for slope in by_step(bias, self.nv, q, qd)))

    def slopes(self, q: Vector, qd: Vector, qdd: Vector) -> Slopes:
        """Return the derivatives of the joint's motion with respect to its coordinates.

        Parameters
        ----------
        q : Vector
            Coordinates of the joint.
        qd : Vector
            Velocity of the joint, along the columns of S.
        qdd : Vector
            Acceleration of the joint, along the columns of S.

        Returns
        -------
        Slopes
            Derivatives of S, of the velocity S qd and of the acceleration.

        Raises
        ------
        UnsupportedError
            If the joint type does not define `motion`.

        Examples
        --------
        >>> import chasles
        >>> from chasles.mathematics.linear import Vector
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> q = joint.neutral()
        >>> qd, qdd = Vector.of(2.0), Vector.of(1.0)
        >>> len(joint.slopes(q, qd, qdd).velocity.columns)
        1
        """
        units = Matrix.identity(self.nv).rows
        turned = tuple(self.subspace_rate(q, Vector(unit)) for unit in units)
        velocity, bias = _along(turned, qd), self.subspace_rate(q, qd)
        acceleration = _along(turned, qdd) + self.bias_slopes(q, qd)
        return Slopes(turned, velocity, acceleration, bias=velocity + bias)

    def rates(self, q: Vector, v: Motion) -> Vector:
        """Return the joint velocity for a relative velocity of the joint's two bodies.

        The result qd is the least-squares solution of S qd = v.

        Parameters
        ----------
        q : Vector
            Coordinates of the joint.
        v : Motion
            Velocity across the joint, in body coordinates.

        Returns
        -------
        Vector
            Velocity of the joint.

        Raises
        ------
        UnsupportedError
            If the joint type does not define `motion`.

        Examples
        --------
        >>> import chasles
        >>> from chasles.mathematics.linear import Vector
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> q = joint.neutral()
        >>> qd = Vector.of(2.0)
        >>> joint.rates(q, joint.subspace(q) @ qd)
        Vector(entries=(2.0,))
        """
        return self.active(q).T @ v

    def active(self, q: Vector) -> Forces:
        """Return the active force subspace T_a, with T_a' S = 1.

        A joint actuator exerts the spatial force T_a @ tau on the body. Other choices of T_a, such
        as a force at the rim of a gear wheel, change the bearing loads but not the motion
        (Featherstone 2008, example 3.2).

        Parameters
        ----------
        q : Vector
            Coordinates of the joint.

        Returns
        -------
        Forces
            One column per degree of freedom.

        Raises
        ------
        UnsupportedError
            If the joint type does not define `motion`.

        Examples
        --------
        >>> import chasles
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> q = joint.neutral()
        >>> len(joint.active(q).columns)
        1
        """
        S = self.subspace(q)
        dual = Forces(tuple(Force(s.angular, s.linear) for s in S.columns))
        return dual @ invert_symmetric(dual.T @ S)

    # Configurations -----------------------------------------------------------------------------

    def neutral(self) -> Vector:
        """Return the configuration in which the joint's two frames coincide.

        Returns
        -------
        Vector
            Coordinates of the joint.

        Examples
        --------
        >>> import chasles
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> joint.neutral()
        Vector(entries=(-0.0,))
        """
        return Vector(tuple(float(unit == "1" and k == 0) for k, unit in enumerate(self.units)))

    def integrate(self, q: Vector, v: Vector) -> Vector:
        """Return the configuration after moving with constant velocity v for unit time.

        Parameters
        ----------
        q : Vector
            Coordinates of the joint (rad or m).
        v : Vector
            Velocity of the joint (rad/s or m/s), along the columns of S.

        Returns
        -------
        Vector
            Coordinates of the joint (rad or m) after 1 s.

        Examples
        --------
        >>> import chasles
        >>> from chasles.mathematics.linear import Vector
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> q = joint.neutral()
        >>> qd = Vector.of(2.0)
        >>> joint.integrate(q, qd)
        Vector(entries=(2.0,))
        """
        return q + v

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        """Return the velocity that takes q0 to q1 in unit time.

        Parameters
        ----------
        q0 : Vector
            Initial coordinates of the joint.
        q1 : Vector
            Final coordinates of the joint.

        Returns
        -------
        Vector
            Velocity of the joint.

        Examples
        --------
        >>> import chasles
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> q = joint.neutral()
        >>> joint.difference(q, q)
        Vector(entries=(0.0,))
        """
        return q1 - q0

    def drift(self, qd: Vector) -> Matrix:
        """Return the matrix -ad(qd) (Lie bracket), which is zero if velocities are the rates of q.

        A small displacement d between two motions changes at the rate drift @ d + (difference in
        qd).

        Parameters
        ----------
        qd : Vector
            Velocity of the joint, along the columns of S.

        Returns
        -------
        Matrix
            One row and one column per degree of freedom.

        Raises
        ------
        UnsupportedError
            If `additive` is False, and the joint type does not define `drift`.

        Examples
        --------
        >>> import chasles
        >>> from chasles.mathematics.linear import Vector
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> qd = Vector.of(2.0)
        >>> joint.drift(qd).rows
        ((0.0,),)
        """
        if not self.additive:
            problem = f"{type(self).__name__} does not define drift(qd)"
            raise UnsupportedError("E-JOINT-016", problem)
        return Matrix.zero(self.nv, self.nv)

    # Loop closure -------------------------------------------------------------------------------

    def constraint(self, q: Vector) -> Forces:
        """Return T, whose columns span the forces that the joint transmits, in body coordinates.

        Parameters
        ----------
        q : Vector
            Coordinates of the joint.

        Returns
        -------
        Forces
            One column per constrained direction.

        Raises
        ------
        UnsupportedError
            If the joint type does not define `constraint`.

        Examples
        --------
        >>> import chasles
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> q = joint.neutral()
        >>> len(joint.constraint(q).columns)
        5
        """
        problem = f"{type(self).__name__} does not define constraint(q)"
        raise UnsupportedError("E-JOINT-017", problem)

    def fit(self, X: Transform) -> Vector:
        """Return q such that motion(q) = X, up to an error in the constrained directions T.

        Parameters
        ----------
        X : Transform
            Transform from the predecessor frame to the successor frame.

        Returns
        -------
        Vector
            Coordinates of the joint.

        Raises
        ------
        UnsupportedError
            If the joint type does not define `fit`.

        Examples
        --------
        >>> import chasles
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> q = joint.neutral()
        >>> joint.fit(joint.motion(q))
        Vector(entries=(0.0,))
        """
        raise UnsupportedError("E-JOINT-018", f"{type(self).__name__} does not define fit(X)")

    # Rotor, resistance and inertia --------------------------------------------------------------

    def rotor(self, qdd: Vector) -> Vector:
        """Return the generalized force that accelerates the rotor (armature times acceleration).

        Parameters
        ----------
        qdd : Vector
            Acceleration of the joint, along the columns of S.

        Returns
        -------
        Vector
            Generalized force (N m or N).

        Examples
        --------
        >>> import chasles
        >>> from chasles.mathematics.linear import Vector
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> qdd = Vector.of(2.0)
        >>> joint.rotor(qdd)
        Vector(entries=(0.0,))
        """
        return Vector(tuple(a * x for a, x in zip(self.armature, qdd, strict=True)))

    def turning(self, qd: Vector) -> Matrix:
        """Return the matrix C of the generalized force C qd due to the armature.

        The force C qd is quadratic in the velocities.

        Parameters
        ----------
        qd : Vector
            Velocity of the joint, along the columns of S.

        Returns
        -------
        Matrix
            One row and one column per degree of freedom.

        Examples
        --------
        >>> import chasles
        >>> from chasles.mathematics.linear import Vector
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> qd = Vector.of(2.0)
        >>> joint.turning(qd).rows
        ((0.0,),)
        """
        return Matrix.zero(self.nv, self.nv)

    def resistance(self, qd: Vector) -> Vector:
        """Return the generalized force needed to move at constant velocity.

        The force is the sum of losses, load and velocity-dependent rotor forces.

        Parameters
        ----------
        qd : Vector
            Velocity of the joint, along the columns of S.

        Returns
        -------
        Vector
            Generalized force (N m or N).

        Examples
        --------
        >>> import chasles
        >>> from chasles.mathematics.linear import Vector
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> qd = Vector.of(2.0)
        >>> joint.resistance(qd)
        Vector(entries=(0.0,))
        """
        return self.losses(qd) + self.turning(qd) @ qd + self.load

    def resistance_slopes(self, qd: Vector) -> Matrix:
        """Return the derivative of `resistance` with respect to qd, without dry friction.

        Parameters
        ----------
        qd : Vector
            Velocity of the joint, along the columns of S.

        Returns
        -------
        Matrix
            One row and one column per degree of freedom.

        Examples
        --------
        >>> import chasles
        >>> from chasles.mathematics.linear import Vector
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> qd = Vector.of(2.0)
        >>> joint.resistance_slopes(qd).rows
        ((0.0,),)
        """
        units = Matrix.identity(self.nv).rows
        turned = Matrix(tuple((self.turning(Vector(unit)) @ qd).entries for unit in units)).T
        return diagonal(self.damping) + self.turning(qd) + turned

    def displacement(self, q: Vector) -> Vector:
        """Return the displacement of the spring from rest along each degree of freedom.

        The spring's energy is stiffness / 2 times the square of the displacement, and its force is
        stiffness times the displacement.

        Parameters
        ----------
        q : Vector
            Coordinates of the joint.

        Returns
        -------
        Vector
            Displacement (rad or m).

        Examples
        --------
        >>> import chasles
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> q = joint.neutral()
        >>> joint.displacement(q)
        Vector(entries=(0.0,))
        """
        return self.difference(self.rest, q)

    def losses(self, qd: Vector) -> Vector:
        """Return the generalized forces due to viscous damping and dry friction.

        Parameters
        ----------
        qd : Vector
            Velocity of the joint, along the columns of S.

        Returns
        -------
        Vector
            Generalized force (N m or N).

        Examples
        --------
        >>> import chasles
        >>> from chasles.mathematics.linear import Vector
        >>> joint = chasles.robots.planar(1).model.bodies[0].joint
        >>> qd = Vector.of(2.0)
        >>> joint.losses(qd)
        Vector(entries=(0.0,))
        """
        each = zip(self.damping, self.friction, qd, strict=True)
        return Vector(tuple(d * x + f * (less(0.0, x) - less(x, 0.0)) for d, f, x in each))

    def transferable(self, inertia: RigidInertia, k: Number) -> RigidInertia:
        """Return the part of the body's inertia that may be moved to the parent body.

        The returned inertia I satisfies I S = 0 and does not depend on q (Featherstone 2008,
        section 9.7).

        Parameters
        ----------
        inertia : RigidInertia
            Inertia of the body, in body coordinates.
        k : Number
            Moment of inertia about x and about y to move to the parent (kg m2). Ignored unless
            `unfelt` contains "k".

        Returns
        -------
        RigidInertia
            The part of the inertia, in body coordinates.

        Examples
        --------
        >>> import chasles
        >>> body = chasles.robots.planar(1).model.bodies[0]
        >>> body.joint.transferable(body.inertia, 0.0).m == body.inertia.m
        True
        """
        m, hz, k = (
            x if part in self.unfelt else 0.0
            for part, x in (("m", inertia.m), ("h", inertia.h[2]), ("k", k))
        )
        moments = inertia.I if "I" in self.unfelt else Symmetric(k, k, 0.0, 0.0, 0.0, 0.0)
        return RigidInertia(m, Vector.of(0.0, 0.0, hz), moments)


@dataclass(frozen=True)
class Steady(Joint):
    """A joint whose motion subspace S is constant in the body frame."""

    def subspace(self, q: Vector) -> Motions:
        return super().subspace(self.neutral())

    def subspace_rates(self, q: Vector, rates: Sequence[Vector]) -> list[Motions]:
        return [self.subspace(q), *[self._none for _ in rates]]

    def slopes(self, q: Vector, qd: Vector, qdd: Vector) -> Slopes:
        return Slopes((self._none,) * self.nv, self._none, self._none, self._none)

    @property
    def _none(self) -> Motions:
        return Motions((Motion.zero(),) * self.nv)


@dataclass(frozen=True)
class Natural(Steady):
    """Base class of joints that move only about or along the axes x, y, z of the joint frame."""

    free: ClassVar[tuple[Motion, ...]]
    """Columns of the motion subspace S: the unit motions (see `UNITS`) that the joint allows."""

    def subspace(self, q: Vector) -> Motions:
        return Motions(self.free)

    def constraint(self, q: Vector) -> Forces:
        return Forces(tuple(Force.of(*unit) for unit in UNITS if unit not in self.free))

    def drift(self, qd: Vector) -> Matrix:
        return super().drift(qd) if self.additive else group_drift(self.subspace(qd), qd)

    def turning(self, qd: Vector) -> Matrix:
        """Return the matrix C of the force C qd = a (w x v) due to translational armatures a.

        w and v are the angular and linear velocity. The momentum a v is expressed along the
        parent's axes. MuJoCo defines the armature of a free joint in this way, with the linear
        velocity in world axes.
        """
        w = (Motions(self.free) @ qd).angular
        each = [(s.linear, 0.5 * a) for s, a in zip(self.free, self.armature, strict=True)]
        return Matrix(tuple(tuple(u.dot(w.cross(v)) * (a + b) for v, b in each) for u, a in each))


@dataclass(frozen=True)
class Revolute(Natural):
    """Rotation about z by q (rad). At q = 0 the body's frame is rotated by `offset`."""

    offset: float = 0.0

    kind = "revolute"
    nq = nv = 1
    units = ("rad",)
    unfelt = "m h k"
    free = (WZ,)
    flips = hinge = pivots = True
    bounds: ClassVar[Bounds] = "needed"
    twin = "continuous"
    names = {"URDF": "revolute", "SDF": "revolute", "MJCF": "hinge", "DH": "revolute", "DAT": "0"}
    numbers = Numbers("angle", "rate")
    elsewhere = {"Pinocchio": numbers, "MuJoCo": numbers, "Drake": numbers}

    def motion(self, q: Vector) -> Transform:
        return Transform(about(2, q[0] + self.offset), Vector.zero())

    def turn(self, q: Vector) -> Vector:
        half = 0.5 * (q[0] + self.offset)
        return Vector.of(cos(half), 0.0, 0.0, sin(half))

    def neutral(self) -> Vector:
        return Vector.of(-self.offset)

    def fit(self, X: Transform) -> Vector:
        return Vector.of(turn_about_z(X) - self.offset)


@dataclass(frozen=True)
class Continuous(Revolute):
    """A revolute joint without limits, whose angle wraps around."""

    bounds = "none"
    twin = "revolute"
    names = Revolute.names | {"URDF": "continuous", "SDF": "continuous"}
    elsewhere = Revolute.elsewhere | {"Pinocchio": Numbers("cos sin", "rate")}


def _along(turned: Sequence[Motions], rates: Vector) -> Motions:
    return Motions(tuple(dS @ rates for dS in turned))
