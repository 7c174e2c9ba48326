"""The public robot: one mechanism, with its functions compiled on first use."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from importlib import import_module
from typing import Any, Literal, get_args

import numpy as np

from chasles.algorithms import CLOSED_LOOPS, OPEN
from chasles.algorithms.spatial.viewpoint import At, Axes, Kind
from chasles.backends.arrays import check_tolerance
from chasles.backends.pool import COMPILING
from chasles.checks import Verification, verify
from chasles.compiled import (
    Compiled,
    Recipe,
    checked_frame,
    checked_joints,
    checked_options,
    checked_time,
    derivative_names,
    order_of,
    order_option,
    rates_by_name,
    wrench_arguments,
)
from chasles.libraries import refuse
from chasles.loops import (
    TOLERANCE,
    ClosedLoops,
    Cluster,
    LoopError,
    Loops,
    Mobility,
    assemble,
    check_inertia,
    clusters,
    mobility,
)
from chasles.loops.charts import Charts
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia
from chasles.model import (
    JOINTS,
    CouplingData,
    Description,
    JointData,
    LoopData,
    Model,
    ModelError,
    build,
    edit,
)
from chasles.model.closure import Closure
from chasles.model.drives import Motion, motion
from chasles.model.parameters import nominal, shape
from chasles.motion.rollouts import rollout, rollout_pullback
from chasles.motion.simulation import simulate
from chasles.names import check_robot, from_names, numbers
from chasles.numeric.base_parameters import BaseParameters, base_parameters, random_states
from chasles.numeric.linear_systems import actuation_matrix, checked_step, discretized
from chasles.numeric.results import delivered, filled
from chasles.plots import Plots
from chasles.programs import Derivative
from chasles.tracing import WrenchKey

Array = Any
"""An array of NumPy, PyTorch, JAX or CuPy, or anything NumPy can make one of. Results are of the
same library; annotations name NumPy's."""

Coordinates = Literal["tree", "independent"]
"""All coordinates of the tree, or those that its closed loops leave independent."""


class Robot:
    """A mechanism and everything that can be computed of it.

    Arrays have the coordinates last: q is (..., nq), velocities, accelerations and
    forces are (..., nv), with any leading shapes that broadcast together. SI units and radians;
    6-vectors have the angular part first. Every function takes `out=`, an array for the result, and
    `threads=`, how many to use (by default all for large batches). The first call of a function
    compiles it for this robot.

    A robot with loops or couplings is a tree that these constrain: q, qd, tau are those of the
    tree. `assemble` and `complete` give positions and rates that keep the loops closed, and
    `forward_dynamics`, `linearize` and whatever else follows from forces keep them so, or say that
    they cannot. Functions of a motion (kinematics, energy, momentum) and the terms of the equation
    of motion (`mass_matrix`, `bias_forces`, `gravity_forces`, ...) are those of the tree, which are
    true of its closed motions too: M qdd + h = tau + A' multipliers, with A = `loop_matrix`.

    A robot that depends on time, because joints are driven (`drive`) or couplings change, is asked
    at a time: `robot.at_time(t).mass_matrix(q)`.
    """

    def __init__(self, source: Description, *, mimic: bool = True, strict: bool = False) -> None:
        self.model: Model = build(source, mimic=mimic, strict=strict)
        self._mimic = mimic
        self._time: np.ndarray | None = None
        self._compiled: dict[tuple[Any, ...], Compiled] = {}
        self._ready: dict[Any, Callable[..., Any]] = {}
        if self.model.idle and source.closure is None:
            check_inertia(self._choice)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _rebuild, (self.model.source, self._mimic, self._time)

    def __repr__(self) -> str:
        loops = f", loops {len(self.loops)}" if self.loops else ""
        loops += f", couplings {len(self.couplings)}" if self.couplings else ""
        return (
            f"<Robot {self.name!r}: {len(self.joints)} joints, nq {self.nq}, nv {self.nv}{loops}>"
        )

    # What it is ------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The robot's name."""
        return self.model.name

    @property
    def bodies(self) -> tuple[str, ...]:
        """All links, in file order."""
        return tuple(link.name for link in self.model.source.links)

    @property
    def joints(self) -> tuple[str, ...]:
        """The moving joints that own coordinates, in the order of their coordinates."""
        return tuple(self.model.bodies[i].data.name for i in self.model.movers)

    @property
    def moving_joints(self) -> tuple[str, ...]:
        """All moving joints in file order, mimic followers included: the rows of reactions."""
        return tuple(self.model.bodies[i].data.name for i in self.model.in_file_order)

    @property
    def driven_joints(self) -> tuple[str, ...]:
        """The joints whose motion is given in time (`drive`), in file order; they have no q."""
        return tuple(self.model.bodies[i].data.name for i in self.model.driven)

    @property
    def mass(self) -> float:
        """The mass of all links, in kg, those fixed to the world included."""
        return float(sum(link.inertia.m for link in self.model.source.links))

    @property
    def frames(self) -> tuple[str, ...]:
        """Everything that `frame=` accepts: links and named frames."""
        return tuple(self.model.frames)

    @property
    def nq(self) -> int:
        """The number of position coordinates."""
        return self.model.nq

    @property
    def nv(self) -> int:
        """The number of velocity coordinates (degrees of freedom)."""
        return self.model.nv

    @property
    def gravity(self) -> np.ndarray:
        """The acceleration of gravity along the world's axes, in m/s2."""
        return np.array(list(self.model.gravity_vector))

    @property
    def notes(self) -> tuple[str, ...]:
        """What loading assumed, repaired or found suspicious."""
        return self.model.notes

    def joint(self, name: str) -> JointData:
        """What the file says of a joint: type, axis, limits, damping, friction, mimic."""
        for data in self.model.source.joints:
            if data.name == name:
                return data
        raise ModelError(f"robot {self.name!r}: no joint {name!r}; it has {', '.join(self.joints)}")

    def position_slice(self, joint: str) -> slice:
        """Where a joint's coordinates lie in q."""
        return self.model.position_slices[self.model.mover(joint)]

    def velocity_slice(self, joint: str) -> slice:
        """Where a joint's velocities lie in qd (and forces in tau)."""
        return self.model.velocity_slices[self.model.mover(joint)]

    def parameter(self, name: str) -> np.ndarray:
        """A number of the mechanism: "<link>.mass", ".center", ".inertia", "<joint>.placement",
        "gravity"; what `chasles.compile(..., parameters=...)` takes as inputs.
        """
        return np.array(nominal(self.model.source, name)).reshape(shape(self.model.source, name))

    # Changed robots: always a new one ---------------------------------------------------------

    def lock(self, positions: Mapping[str, Any]) -> "Robot":
        """The robot with some joints fixed: {joint: position}, each with the joint's nq numbers."""
        values = {}
        for name, value in positions.items():
            entries = np.atleast_1d(np.asarray(value, dtype=float))
            where = self.position_slice(name)
            if entries.shape != (where.stop - where.start,) or not np.all(np.isfinite(entries)):
                raise ValueError(
                    f"lock: joint {name!r} needs {where.stop - where.start} finite numbers, "
                    f"not {value!r}"
                )
            values[name] = Vector(tuple(map(float, entries)))
        return self._changed(edit.lock(self.model, values))

    def attach(
        self,
        frame: str,
        *,
        mass: float,
        center: Array = (0.0, 0.0, 0.0),
        inertia: Array = None,
        name: str = "payload",
    ) -> "Robot":
        """The robot with a payload fixed to a frame.

        mass in kg; center: its centre of mass in the frame, in m; inertia: 3x3 about its centre of
        mass along the frame's axes, in kg m2 (a point mass if omitted).
        """
        tensor = np.zeros((3, 3)) if inertia is None else np.asarray(inertia, dtype=float)
        point = np.asarray(center, dtype=float)
        if tensor.shape != (3, 3) or point.shape != (3,) or not np.allclose(tensor, tensor.T):
            raise ValueError("attach: center must be 3 numbers and inertia a symmetric 3x3 matrix")
        xx, yy, zz, xy, xz, yz = (
            float(tensor[i]) for i in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
        )
        payload = RigidInertia.from_center(
            float(mass), Vector(tuple(map(float, point))), Symmetric(xx, yy, zz, xy, xz, yz)
        )
        return self._changed(edit.attach(self.model, frame, name, payload))

    def drive(self, motions: Mapping[str, Motion]) -> "Robot":
        """The robot with joints that move in time as given: {joint: function of the time in s}.

        A function gives the joint's coordinate, in rad or m (or all of them where it has several),
        and is written with arithmetic and the functions of `chasles.expr`; it is run once. A driven
        joint has no coordinates (rheonomic, Featherstone 2008, section 3.5); what moves it are its
        `driving_forces`. Ask the new robot `at_time`.
        """
        return self._changed(
            edit.drive(self.model, {name: motion(f, joint=name) for name, f in motions.items()})
        )

    def at_time(self, t: Array) -> "Robot":
        """The robot at a time (...), in s, which broadcasts with the other arrays of a function.

        Only of a robot that depends on time. What is decided once, as which freedoms of loops are
        independent, is decided at t = 0.
        """
        if not self.model.timed:
            raise ModelError(
                f"at_time: robot {self.name!r} does not depend on time; ask it as it is"
            )
        held = object.__new__(Robot)
        held.__dict__.update(self.__dict__, _time=checked_time(t))
        if self.model.loop_rows:
            held.__dict__.update(_choice=self._choice, _solver=self._solver, _charts=self._charts)
        return held

    def _at(self, t: Array) -> "Robot":
        """The robot at a time, whether it depends on it or not."""
        return self.at_time(t) if self.model.timed else self

    def subtree(self, link: str, *, floating: bool = False) -> "Robot":
        """The part of the robot that hangs on a link; the link is held fixed, or floats."""
        return self._changed(edit.subtree(self.model, link, floating=floating))

    def with_gravity(self, gravity: Array) -> "Robot":
        """The robot in another field of gravity: three numbers in m/s2, world axes."""
        g = np.asarray(gravity, dtype=float)
        if g.shape != (3,) or not np.all(np.isfinite(g)):
            raise ValueError(f"with_gravity: give three finite numbers, not {gravity!r}")
        return self._changed(edit.with_gravity(self.model, Vector(tuple(map(float, g)))))

    def simplified(self) -> "Robot":
        """A robot with the same equation of motion and fewer inertia parameters that are not zero.

        The part of a link's inertia that its joint does not feel moves to the link before it
        (dynamic equivalence, Featherstone 2008, section 9.7). Joint forces, accelerations and
        kinetic energy stay the same, as `is_equivalent` checks; reactions do not, nor does what
        belongs to mass that went into a fixed base: momentum, centre of mass, a constant of
        potential energy. Masses may come out zero or negative. Functions with method="fastest" do
        this by themselves: it is for other programs, and for those who want to see it.
        """
        return self._changed(edit.simplified(self.model))

    def is_equivalent(
        self,
        other: "Robot",
        *,
        tolerance: float = 1e-9,
        rng: "np.random.Generator | int | None" = 0,
    ) -> bool:
        """Whether another robot with the same joints has the same equation of motion.

        Compares the joint forces of random motions and the mass matrices, with joints anywhere; of
        robots with loops or couplings, whether positions that close the one close the other, how
        many freedoms they leave, and accelerations from there. tolerance is relative to the largest
        entry. Damping and friction are left out.
        """
        check_robot("is_equivalent", other)
        check_tolerance("is_equivalent", tolerance)
        mine, theirs = (
            [JOINTS.get(kind, kind) for kind in (robot.joint(n).kind for n in robot.joints)]
            for robot in (self, other)
        )
        if mine != theirs:
            return False
        rng = np.random.default_rng(rng)
        if self.model.loop_rows or other.model.loop_rows:
            return self._moves_as(other, tolerance, rng)
        count = 8
        q = self.integrate(self.neutral(), rng.uniform(-np.pi, np.pi, size=(count, self.nv)))
        qd, qdd = rng.normal(size=(2, count, self.nv))
        pairs = (
            [robot.inverse_dynamics(q, qd, qdd), robot.mass_matrix(q)] for robot in (self, other)
        )
        return all(
            np.max(np.abs(a - b), initial=0.0) <= tolerance * np.max(np.abs(a), initial=0.0)
            for a, b in zip(*pairs, strict=True)
        )

    def _moves_as(self, other: "Robot", tolerance: float, rng: np.random.Generator) -> bool:
        """Whether the closed motions of one robot are those of another; one may have no loops."""
        loops = (self if self.model.loop_rows else other)._closing
        q = loops.solve(loops.references, loops.columns).q
        tau = rng.normal(size=(len(q), self.nv))
        try:
            n = int(self.mobility())
            if n != int(other.mobility()):
                return False
            qd = self.complete(q, rng.normal(size=(len(q), n)))
            a, b = (robot.forward_dynamics(q, qd, tau) for robot in (self, other))
        except LoopError:
            return False
        error, size = (np.max(np.abs(x), initial=0.0) for x in (a - b, a))
        return bool(error <= tolerance * size)

    def _changed(self, source: Description) -> "Robot":
        return _rebuild(source, self._mimic, self._time)

    # Configurations ---------------------------------------------------------------------------

    def neutral(self) -> np.ndarray:
        """The configuration in which every joint's two frames coincide: (nq,)."""
        q = np.empty(self.nq)
        for i, where in self.model.position_slices.items():
            q[where] = list(self.model.bodies[i].joint.neutral())
        return q

    def state(self, values: Mapping[str, Array], *, default: Array = None) -> np.ndarray:
        """q (..., nq) from {joint: position}, shapes broadcast together.

        Joints that are not named are as in `default` (neutral if omitted). The parts of any array
        by joint name: `chasles.conventions.position_by_name` and `velocity_by_name`.
        """
        if not isinstance(values, Mapping):
            raise TypeError(f"state: give {{joint: position}}, not {type(values).__name__}")
        q = numbers("default", self.neutral() if default is None else default, self.nq)
        return from_names(values, self.position_slice, q)

    def random(
        self, rng: "np.random.Generator | int | None" = None, size: int | tuple[int, ...] = ()
    ) -> np.ndarray:
        """Random configurations (*size, nq): uniform between limits where a joint has them.

        Without limits, angles lie in [-pi, pi], positions in [-1, 1] m; orientations are uniform.
        They leave loops open: `assemble` takes one as a guess, and closes them.
        """
        rng = np.random.default_rng(rng)
        shape = (size,) if isinstance(size, int) else tuple(size)
        q = np.empty((*shape, self.nq))
        for i, where in self.model.position_slices.items():
            body = self.model.bodies[i]
            for k, unit in zip(range(where.start, where.stop), body.joint.units, strict=True):
                span = {"rad": np.pi, "m": 1.0, "1": 0.0}[unit]
                low, high = body.data.limits.lower, body.data.limits.upper
                bounded = body.joint.nq == 1 and np.isfinite(low) and np.isfinite(high)
                low, high = (low, high) if bounded and low <= high else (-span, span)
                q[..., k] = rng.uniform(low, high, shape) if unit != "1" else rng.normal(size=shape)
            if "1" in body.joint.units:
                turn = q[..., where.start : where.start + 4]
                turn /= np.linalg.norm(turn, axis=-1, keepdims=True)
        return q

    def integrate(
        self, q: Array, v: Array, *, out: Array = None, threads: int | None = None
    ) -> np.ndarray:
        """The configuration after moving from q with constant velocity v for unit time: (..., nq).

        Exact on rotations (the exponential of SO(3) and SE(3), on the body's side).
        """
        return self._call("integrate", q, v, out=out, threads=threads)

    def difference(
        self, q0: Array, q1: Array, *, out: Array = None, threads: int | None = None
    ) -> np.ndarray:
        """The velocity that takes q0 to q1 in unit time: (..., nv); the inverse of `integrate`."""
        return self._call("difference", q0, q1, out=out, threads=threads)

    # Kinematics -------------------------------------------------------------------------------

    def forward_kinematics(
        self,
        q: Array,
        *,
        frame: str,
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """The pose of a frame in the world, as homogeneous matrices (..., 4, 4)."""
        return self._call(
            "forward_kinematics", q, out=out, threads=threads, method=method, frame=frame
        )

    def frame_velocity(
        self,
        q: Array,
        qd: Array,
        *,
        frame: str,
        axes: Axes = "world",
        at: At = "frame",
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """Angular velocity (rad/s), then linear velocity (m/s) of a frame: (..., 6).

        The linear part is the velocity of the body's point at `at`: "frame" (the frame's origin),
        (x, y, z) in the frame, or "world" (the point that passes through the world's origin).
        `axes`: "world" or "frame", along which the components are given.
        """
        return self._call(
            "frame_velocity",
            q,
            qd,
            out=out,
            threads=threads,
            method=method,
            frame=frame,
            axes=axes,
            at=at,
        )

    def frame_acceleration(
        self,
        q: Array,
        qd: Array,
        qdd: Array,
        *,
        frame: str,
        axes: Axes = "world",
        at: At = "frame",
        kind: Kind = "classical",
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """Angular acceleration (rad/s2), then linear acceleration (m/s2) of a frame: (..., 6).

        kind: "classical" (of the body's point at `at`), "spatial" (the derivative of the spatial
        velocity: less by w x v; Featherstone 2008, section 2.11) or "proper" (classical minus
        gravity: what an accelerometer measures). `axes` and `at` as in `frame_velocity`.
        """
        return self._call(
            "frame_acceleration",
            q,
            qd,
            qdd,
            out=out,
            threads=threads,
            method=method,
            frame=frame,
            axes=axes,
            at=at,
            kind=kind,
        )

    def frame_motion(
        self,
        q: Array,
        *rates: Array,
        frame: str,
        axes: Axes = "world",
        at: At = "frame",
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
        **named_rates: Array,
    ) -> np.ndarray:
        """Velocity, acceleration, jerk and so on of a frame: (..., order, 6).

        rates: qd, qdd, qddd, ..., in this order or by these names: the order is how many are given.
        Row k is the k-th derivative of the position of the body's point at `at` (last three,
        m/s^k), and the derivative of its body's angular velocity of the same order (first three,
        rad/s^k): rows 0 and 1 are `frame_velocity` and the classical `frame_acceleration`. `at` as
        in `frame_velocity`: the point moves with the body. axes="frame" gives the components of the
        same derivatives along the frame's axes. method: "joint-motion" (Mitra, in the base frame),
        "link-frames" (the same in the links' frames), or "fastest".
        """
        rates += rates_by_name("frame_motion", rates, named_rates)
        return self._call(
            "frame_motion",
            q,
            *rates,
            out=out,
            threads=threads,
            method=method,
            frame=frame,
            axes=axes,
            at=at,
            order=order_of("frame_motion", rates),
        )

    def jacobian(
        self,
        q: Array,
        *,
        frame: str,
        axes: Axes = "world",
        at: At = "frame",
        out: Array = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """J with `frame_velocity` = J qd: (..., 6, nv), angular rows first."""
        return self._call("jacobian", q, out=out, threads=threads, frame=frame, axes=axes, at=at)

    def generalized_jacobian(
        self,
        q: Array,
        *,
        frame: str,
        axes: Axes = "world",
        at: At = "frame",
        out: Array = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """J* with velocity J* qd of a frame while the whole robot has no momentum: (..., 6, nv).

        A floating base recoils from the motion of the joints; its own columns are zero (Umetani and
        Yoshida 1989; Featherstone 2008, example 9.4). On a base that is held it is `jacobian`; a
        floating base that loops hold is refused. `axes` and `at` as there.
        """
        return self._call(
            "generalized_jacobian", q, out=out, threads=threads, frame=frame, axes=axes, at=at
        )

    def jacobian_rate(
        self,
        q: Array,
        qd: Array,
        qdd: Array = None,
        *,
        frame: str,
        axes: Axes = "world",
        at: At = "frame",
        order: int = 1,
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """The time derivative of the entries of `jacobian` along the motion: (..., 6, nv).

        order=2 is the second derivative, which needs qdd. method: "spatial" (Featherstone 2008,
        example 2.5; first order), "joint-motion" (Mitra, 2.9), or "fastest".
        """
        return self._call(
            "jacobian_rate",
            *_rates_of_order("jacobian_rate", order, q, qd, qdd),
            out=out,
            threads=threads,
            method=method,
            frame=frame,
            axes=axes,
            at=at,
            order=order,
        )

    # Closed loops -----------------------------------------------------------------------------

    @property
    def loops(self) -> tuple[str, ...]:
        """The joints that close loops; they have no coordinates."""
        return tuple(loop.name for loop in self.model.loops)

    @property
    def independent(self) -> tuple[str, ...]:
        """The freedoms that determine all others through the loops: what y stands for.

        Joints, with [k] where a joint has several freedoms. Chosen once, by rank at positions that
        close the loops, early joints first; `with_independent` makes another choice. All freedoms
        of the tree, in order, if there are no loops.
        """
        return tuple(self._choice.freedoms[k] for k in self._choice.independent)

    def with_independent(self, *freedoms: str) -> "Robot":
        """The robot with other freedoms for `independent`, in the order of the coordinates.

        Raises `chasles.LockedMechanism` for one that the loops let not move.
        """
        self._choice.select(freedoms)
        return self._changed(edit.with_independent(self.model, freedoms))

    def with_loops(self, *loops: LoopData) -> "Robot":
        """The robot with more loops closed, each by a joint of any type or a weld.

        For example the feet of a robot that stands: `LoopData("left", "fixed", None, "left_foot",
        pose, child_pose=...)` welds a frame of link "left_foot" to a pose in the world.
        """
        for loop in loops:
            if not isinstance(loop, LoopData):
                raise TypeError(f"with_loops: give LoopData(...), not {type(loop).__name__}")
        return self._changed(edit.with_loops(self.model, loops))

    @property
    def couplings(self) -> tuple[str, ...]:
        """The equations between coordinates beside those of the loops: gears and the like."""
        return tuple(coupling.name for coupling in self.model.couplings)

    def with_couplings(self, *couplings: CouplingData) -> "Robot":
        """The robot with more equations between its coordinates.

        `chasles.model.gear("drive", "wheel", {"motor": 0.01})` is wheel = 0.01 motor, and
        `chasles.model.coupling("cam", ["lever", "shaft"], function)` is any function(lever, shaft)
        = 0 that is written with `chasles.expr`, or function(lever, shaft, t) = 0 that depends on
        time: then ask the new robot `at_time`. In `loop_residual` and the like their rows follow
        those of the loops; all that is said of loops is true of them.
        """
        for data in couplings:
            if not isinstance(data, CouplingData):
                raise TypeError(
                    f"with_couplings: give gear(...) or coupling(...) of chasles.model, not "
                    f"{type(data).__name__}"
                )
        return self._changed(edit.with_couplings(self.model, couplings))

    def mobility(self, q: Array = None, *, tolerance: float = 1e-9) -> Mobility:
        """How many freedoms the loops leave at a closed q (nq,), by the rank of `loop_matrix`.

        The result is that number (`robot.mobility() == 1`), which prints as a report: rank,
        redundant equations of each loop, the tolerance, freedoms that cannot move while others do,
        and, where a loop has redundant equations, a joint type in its place that has fewer and
        leaves the motion as it is. Without q, at a
        closed position in which nothing is special. tolerance: the residual above which q counts
        as open (rad, and parts of the loop's size).
        """
        return mobility(self._choice if q is None else self._closing, q, tolerance)

    def loop_clusters(self) -> tuple[Cluster, ...]:
        """Loops and couplings that share joints, with these joints: `(loops, joints)` for each.

        What happens in one cluster does not depend on the coordinates of another (Featherstone
        2008, section 8.9); joints that are in none are not constrained.
        """
        return clusters(self.model)

    def assemble(self, y: Array, guess: Array = None) -> np.ndarray:
        """The q (..., nq) that closes the loops, with the `independent` freedoms at y (..., n).

        guess (..., nq): where the search for the dependent coordinates starts, which decides the
        branch; without it, any branch. y has the coordinates themselves, or, for freedoms of
        planar, spherical and free joints, how far to move from the guess along them. Newton's
        method, damped, to 1e-13 of the loop's size. Raises `chasles.ImpossiblePosition` where the
        loops stay open, `chasles.SingularPosition` where y does not determine q.
        """
        return assemble(self._closing, y, guess)

    def complete(self, q: Array, yd: Array, ydd: Array = None, *, tolerance: float = 1e-9) -> Any:
        """All rates qd (..., nv) from those of the `independent` freedoms, at a closed q.

        With ydd, the tuple (qd, qdd) of rates and accelerations. tolerance as in `mobility`; raises
        `chasles.OpenLoop` where q is not closed, `chasles.SingularPosition` where yd does not
        determine qd.
        """
        return self._closing.complete(q, yd, ydd, tolerance)

    def loop_residual(
        self, q: Array, *, out: Array = None, threads: int | None = None
    ) -> np.ndarray:
        """How far the loops are from closed: (..., rows), in rad and m; zero if they are.

        For each loop the motions that its joint forbids: rotations, then translations, along the
        axes of the joint's frame on its child link.
        """
        return self._call("loop_residual", q, out=out, threads=threads)

    def loop_matrix(self, q: Array, *, out: Array = None, threads: int | None = None) -> np.ndarray:
        """A with A qd = `loop_rate`, A qdd = `loop_bias` where loops are closed: (..., rows, nv).

        Rows as in `loop_residual`, whose derivative it is at a closed q.
        """
        return self._call("loop_matrix", q, out=out, threads=threads)

    def loop_rate(self, q: Array, *, out: Array = None, threads: int | None = None) -> np.ndarray:
        """b in A qd = b, which keeps the loops closed: (..., rows); zero unless time moves them.

        That is, unless joints are driven or couplings depend on time.
        """
        return self._call("loop_rate", q, out=out, threads=threads)

    def loop_bias(
        self, q: Array, qd: Array, *, out: Array = None, threads: int | None = None
    ) -> np.ndarray:
        """b in A qdd = b, which keeps the loops closed: (..., rows).

        For A qd = `loop_rate`: the derivative of that, less dA/dt qd.
        """
        return self._call("loop_bias", q, qd, out=out, threads=threads)

    def loop_joint_matrix(
        self, q: Array, *, out: Array = None, threads: int | None = None
    ) -> np.ndarray:
        """B with B qd the velocities of the joints that close loops: (..., freedoms, nv).

        Loop after loop, each with the freedoms of its joint, from predecessor to successor. A loop
        joint has no coordinate; motors, springs or dampers in it, with forces f (N m, N), act on
        the tree as joint forces B' f (Featherstone 2008, section 8.4). Where joints around a loop
        are driven in time, what these add to the velocities is not in B qd.
        """
        return self._call("loop_joint_matrix", q, out=out, threads=threads)

    @cached_property
    def _choice(self) -> Loops:
        """The loops as far as nothing depends on the time."""
        return Loops(self.model, self.function)

    @cached_property
    def _solver(self) -> ClosedLoops:
        return ClosedLoops(self._choice, self._with_closure)

    @cached_property
    def _charts(self) -> Charts:
        return Charts(self._with_closure)

    @property
    def _closing(self) -> Loops:
        """The loops at the robot's time."""
        return self._choice.at(self._moment()) if self.model.timed else self._choice

    @property
    def _closed(self) -> ClosedLoops:
        return self._solver.at(self._moment()) if self.model.timed else self._solver

    def _moment(self) -> np.ndarray:
        if self._time is None:
            raise ModelError(f"robot {self.name!r} depends on time; say when: robot.at_time(t)")
        return self._time

    def _with_closure(self, closure: Closure) -> "Robot":
        return Robot(replace(self.model.source, closure=closure), mimic=self._mimic)

    def constrained_dynamics(
        self,
        q: Array,
        qd: Array,
        tau: Array,
        *,
        f_ext: Mapping[str, Any] | None = None,
        dissipation: bool = False,
        stabilization: float | None = None,
        tolerance: float = TOLERANCE,
        method: str = "fastest",
        out: tuple[Array, Array] | None = None,
        threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations qdd (..., nv) of a robot with loops, and multipliers (..., rows).

        M qdd + h = tau + A' multipliers, with A = `loop_matrix`, whose redundant rows have zeros;
        `loop_forces` makes wrenches of them. q must be closed to `tolerance` (as in `mobility`),
        and qd a motion that keeps it closed (`complete`). stabilization: Baumgarte's T_stab in s,
        which lets errors decay in about that time; choose it near the time between snapshots
        (Featherstone 2008, section 8.3). method: "multipliers" (Eq 8.38), "direct" (Eq 8.36),
        "minimal" (Eq 8.43), or "fastest". Raises `chasles.OpenLoop` and `chasles.SingularPosition`.
        """
        self._require_loops("constrained_dynamics")
        keys, forces = wrench_arguments(self.model, f_ext)
        results = self._closed.constrained_dynamics(
            "constrained_dynamics",
            (q, qd, tau),
            forces,
            tolerance=tolerance,
            threads=threads,
            stabilization=0.0
            if stabilization is None
            else checked_step(stabilization, "constrained_dynamics: stabilization"),
            method=method,
            dissipation=dissipation,
            wrenches=keys,
        )
        return delivered("constrained_dynamics", results, out)

    def _install_closed(self) -> None:
        """From the first plain call on, the method is one with less overhead."""
        if "forward_dynamics" not in self.__dict__ and not self.model.timed:
            self.__dict__["forward_dynamics"] = self._closed.plain(self.forward_dynamics)

    def loop_forces(
        self, q: Array, multipliers: Array, *, out: Array = None, threads: int | None = None
    ) -> np.ndarray:
        """Wrenches (..., loops, 6) that the loop joints transmit: moment (N m), then force (N).

        From the joint's parent to its child link, along the axes and about the origin of its frame
        on the child; multipliers as `constrained_dynamics` returns them.
        """
        return self._call("loop_forces", q, multipliers, out=out, threads=threads)

    def _require_loops(self, function: str) -> None:
        if not self.model.loop_rows:
            raise ModelError(
                f"{function}: robot {self.name!r} has no loops or couplings; use forward_dynamics"
            )

    def _refuse_open(self, what: str, function: str) -> None:
        """Of a robot with loops, some compiled functions would be of the tree alone."""
        if self.model.loop_rows and function in OPEN:
            raise ModelError(
                f"{what}: robot {self.name!r} has loops or couplings, and a program of "
                f"{function} would leave them open; {OPEN[function]}"
            )

    def _refuse_method(self, what: str, method: str) -> None:
        """What is of closed loops alone has no methods to choose from."""
        if method != "fastest":
            raise ValueError(
                f"{what}: method {method!r} is of trees, and robot {self.name!r} has loops or "
                "couplings; leave it out"
            )

    @cached_property
    def _tree(self) -> "Robot":
        """The tree alone, at no time."""
        source = replace(self.model.source, loops=(), couplings=(), independent=(), closure=None)
        return Robot(source, mimic=self._mimic)

    @property
    def _opened(self) -> "Robot":
        """The tree alone, of which functions that leave loops open are asked by name."""
        return self._tree.at_time(self._moment()) if self._tree.model.timed else self._tree

    # Dynamics ---------------------------------------------------------------------------------

    def inverse_dynamics(
        self,
        q: Array,
        qd: Array,
        qdd: Array,
        *,
        f_ext: Mapping[str, Any] | None = None,
        dissipation: bool = False,
        actuated: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """Joint forces tau = M qdd + h - J'F for given accelerations: (..., nv), in N m or N.

        f_ext: wrenches exerted on the robot, {frame: Wrench(...) or array}. dissipation: add joint
        damping and friction. method: "newton-euler-vector" (Luh, Walker, Paul 1980), "spatial"
        (Featherstone 2008, table 5.1), "homogeneous" (Legnani et al. 1996, part II, section 2.3),
        "homogeneous-link" (the same in link frames), "lagrange" (the same paper, section 3),
        "augmented-tensor", "newton-euler-tensor", "lagrange-4x4", "lagrange-3x3", "spatial-1987",
        "kane", "kane-sum", "uicker-kahn", "waters", "christoffel", "vukobratovic",
        "spatial-operator" (Balafoutis, Patel 1991, chapter 5), or "fastest", the one with fewest
        operations for this robot.

        Of a robot with loops, q, qd, qdd must keep them closed, and the result is one of many: with
        it the loop joints transmit nothing. actuated: only these freedoms (joints, with [k] where
        one has several) have forces; where they are more than are needed, those of the least sum of
        weight force^2 (weights: {freedom: weight}, 1 by default). Raises `chasles.UnderActuated`.
        """
        if actuated is not None or weights is not None:
            self._require_loops("inverse_dynamics(actuated=)")
            self._refuse_method("inverse_dynamics(actuated=)", method)
            keys, forces = wrench_arguments(self.model, f_ext)
            found = self._closed.actuator_forces(
                (q, qd, qdd),
                forces,
                self._choice.freedoms if actuated is None else actuated,
                weights,
                tolerance=TOLERANCE,
                threads=threads,
                dissipation=dissipation,
                wrenches=keys,
            )
            return filled("inverse_dynamics", found, out)
        return self._call(
            "inverse_dynamics",
            q,
            qd,
            qdd,
            out=out,
            threads=threads,
            method=method,
            dissipation=dissipation,
            f_ext=f_ext,
        )

    def forward_dynamics(
        self,
        q: Array,
        qd: Array,
        tau: Array,
        *,
        f_ext: Mapping[str, Any] | None = None,
        dissipation: bool = False,
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """Joint accelerations for given joint forces: (..., nv), in rad/s2 or m/s2.

        f_ext and dissipation as in `inverse_dynamics`. method: "articulated-body" (Featherstone
        2008, table 7.1), "mass-matrix" (chapter 6), "homogeneous" or "lagrange" (M and h by joint
        actions or by traces, Legnani et al. 1996), "augmented-tensor", "unit-acceleration",
        "composite-3x3", "conjugate-gradient" (without derivatives), "orthogonal-complement",
        "spatial-operator" (Balafoutis, Patel 1991, chapter 6), "floating-base" (Featherstone, table
        9.4, for robots on one free joint), "assembly-inertia", "assembly-inverse" (table 7.2),
        "divide-and-conquer" (section 7.5; none of the three takes armature, or links that lack mass
        or a moment), or "fastest". Of a robot with loops, which stay closed, by the methods of
        `constrained_dynamics`.
        """
        if self.model.loop_rows:
            keys, forces = wrench_arguments(self.model, f_ext)
            qdd, _ = self._closed.constrained_dynamics(
                "forward_dynamics",
                (q, qd, tau),
                forces,
                tolerance=TOLERANCE,
                threads=threads,
                method=method,
                dissipation=dissipation,
                wrenches=keys,
            )
            if not keys and not dissipation and method == "fastest":
                self._install_closed()
            return filled("forward_dynamics", qdd, out)
        return self._call(
            "forward_dynamics",
            q,
            qd,
            tau,
            out=out,
            threads=threads,
            method=method,
            dissipation=dissipation,
            f_ext=f_ext,
        )

    def hybrid_dynamics(
        self,
        q: Array,
        qd: Array,
        given: Array,
        *,
        known: str | Sequence[str],
        f_ext: Mapping[str, Any] | None = None,
        dissipation: bool = False,
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """The forces of joints whose accelerations are known, the accelerations of the others.

        known: the names of the former. given (..., nv) has accelerations in their entries and
        forces in all others; the result (..., nv) has forces there and accelerations elsewhere. All
        joints known is `inverse_dynamics`, none `forward_dynamics`. f_ext and dissipation as there.
        method: "articulated-body" (Featherstone 2008, table 9.3), "mass-matrix" (section 9.1),
        "floating-base" (table 9.6, where all joints but those of a floating base are known), or
        "fastest".

        Of a robot with loops, which stay closed, by "multipliers" or "fastest". Known accelerations
        may be more than the loops leave free where they agree with them (`complete`); forces are
        then one set of many, with all joints known those of `inverse_dynamics`. Raises
        `chasles.OverDetermined`, `chasles.OpenLoop` and `chasles.SingularPosition`.
        """
        if self.model.loop_rows:
            keys, forces = wrench_arguments(self.model, f_ext)
            found = self._closed.hybrid_dynamics(
                (q, qd, given),
                forces,
                checked_joints(self.model, "hybrid_dynamics", known),
                tolerance=TOLERANCE,
                threads=threads,
                method=method,
                dissipation=dissipation,
                wrenches=keys,
            )
            return filled("hybrid_dynamics", found, out)
        return self._call(
            "hybrid_dynamics",
            q,
            qd,
            given,
            out=out,
            threads=threads,
            method=method,
            dissipation=dissipation,
            f_ext=f_ext,
            known=known,
        )

    def gravity_forces(
        self, q: Array, *, out: Array = None, threads: int | None = None
    ) -> np.ndarray:
        """Joint forces that hold the robot still against gravity: (..., nv).

        Of a robot with loops one choice of many, with which the loop joints transmit nothing.
        """
        return self._call("gravity_forces", q, out=out, threads=threads)

    def bias_forces(
        self,
        q: Array,
        qd: Array,
        *,
        f_ext: Mapping[str, Any] | None = None,
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """h in tau = M qdd + h: Coriolis, centrifugal and gravity forces, less J'F: (..., nv).

        method: "newton-euler-vector", "lagrange" (Legnani et al. 1996), "augmented-tensor"
        (Balafoutis, Patel 1991), or "fastest".
        """
        return self._call(
            "bias_forces", q, qd, out=out, threads=threads, method=method, f_ext=f_ext
        )

    def coriolis_matrix(
        self, q: Array, qd: Array, *, out: Array = None, threads: int | None = None
    ) -> np.ndarray:
        """C with C qd the Coriolis and centrifugal forces and dM/dt = C + C': (..., nv, nv)."""
        return self._call("coriolis_matrix", q, qd, out=out, threads=threads)

    def closed_form(
        self,
        q: Array,
        *,
        method: str = "fastest",
        out: tuple[Array, Array, Array] | None = None,
        threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """D (..., nv, nv), C (..., nv, nv, nv) and G (..., nv) of the equation of motion.

        tau[i] = D[i] @ qdd + qd @ C[i] @ qd + G[i] (Balafoutis and Patel 1991, Eq 5.2.17): D is
        `mass_matrix`, G is `gravity_forces`, and C[i] the symmetric matrix of Christoffel's symbols
        of force i, C[i, j, k] = (dD_ij/dq_k + dD_ik/dq_j - dD_jk/dq_i) / 2. Velocities of planar,
        spherical and free joints are not rates of q: there C[i] has the symbols of the
        Boltzmann-Hamel equation (with terms of the joint's Lie bracket), symmetric as well.
        method: "christoffel" (derivatives of D), "vukobratovic" (generalised links, Eq 5.2.19-20),
        "uicker-kahn" (sums of 4x4 matrices, Eq 5.2.8), or "fastest".
        """
        return self._call("closed_form", q, out=out, threads=threads, method=method)

    def mass_matrix(
        self,
        q: Array,
        *,
        coordinates: Coordinates = "tree",
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """The joint-space inertia matrix M, armature included: (..., nv, nv).

        coordinates: "tree", also of a robot with loops (as in M qdd + h = tau + A' multipliers), or
        "independent" for that of the `independent` freedoms of closed loops (Featherstone 2008, Eq
        8.44): (..., n, n), where 1/2 yd' M yd is the kinetic energy.

        method: "spatial" (composite bodies, Featherstone 2008, table 6.2), "homogeneous" (joint
        actions) or "lagrange" (traces, both Legnani et al. 1996, part II), "augmented-tensor",
        "composite-3x3", "orthogonal-complement", "unit-acceleration" or "spatial-operator"
        (Balafoutis, Patel 1991, chapter 6), or "fastest".
        """
        chosen = _checked_coordinates("mass_matrix", coordinates)
        if chosen == "independent" and self.model.loop_rows:
            self._refuse_method('mass_matrix(coordinates="independent")', method)
            M = self._closed.mass_matrix(q, tolerance=TOLERANCE, threads=threads)
            return filled("mass_matrix", M, out)
        return self._call("mass_matrix", q, out=out, threads=threads, method=method)

    def mass_matrix_inverse(
        self,
        q: Array,
        *,
        coordinates: Coordinates | None = None,
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """The inverse of the mass matrix: (..., nv, nv).

        coordinates, which a robot with loops must be asked for by name: "independent", the inverse
        of mass_matrix(q, coordinates="independent"), (..., n, n), by which closed motions
        accelerate; or "tree", which leaves the loops open. method: "spatial" (Featherstone 2008,
        section 6.5), "spatial-operator" (Balafoutis, Patel 1991, Eq 6.2.19), or "fastest".
        """
        chosen = coordinates and _checked_coordinates("mass_matrix_inverse", coordinates)
        if self.model.loop_rows and chosen is None:
            raise ModelError(
                f"mass_matrix_inverse: robot {self.name!r} has loops or couplings, and does not "
                'accelerate by the inverse of its tree; say coordinates="independent", or "tree"'
            )
        if self.model.loop_rows and chosen == "tree":
            return self._opened.mass_matrix_inverse(q, method=method, out=out, threads=threads)
        if self.model.loop_rows:
            self._refuse_method('mass_matrix_inverse(coordinates="independent")', method)
            M = self.mass_matrix(q, coordinates="independent", threads=threads)
            return filled("mass_matrix_inverse", np.linalg.inv(M), out)
        return self._call("mass_matrix_inverse", q, out=out, threads=threads, method=method)

    def operational_inertia_inverse(
        self,
        q: Array,
        *,
        frame: str | Sequence[str],
        axes: Axes = "world",
        at: At = "frame",
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """J M^-1 J': the acceleration that each unit wrench at a frame adds to it: (..., 6, 6).

        Its inverse is the frame's own (operational-space) inertia, where it has one: with six
        freedoms or more, away from singular configurations; `chasles.control` has that for other
        tasks too. Of k frames, named in a sequence, it is what wrenches on each add to all of them:
        (..., 6k, 6k), in the order of the names (a body with k handles, Featherstone 2008, Eq 7.4).
        `axes` and `at` as in `jacobian`, for twist and wrench. method: "projection" (by the factors
        of M, section 7.2.1), "propagation" (by articulated bodies, from the frames to the root), or
        "fastest". Of a robot with loops, which stay closed, it is J G (G' M G)^-1 G' J' with qd =
        G yd, at a closed q, by "fastest" only.
        """
        if self.model.loop_rows:
            self._refuse_method("operational_inertia_inverse", method)
            G, M = self._closed.reduced("operational_inertia_inverse", q, threads=threads)
            names = checked_frame(self.model, "operational_inertia_inverse", frame, True)
            rows = [
                self.jacobian(q, frame=name, axes=axes, at=at, threads=threads)
                for name in ([names] if isinstance(names, str) else names)
            ]
            J = np.concatenate(rows, axis=-2) @ G
            answer = J @ np.linalg.solve(M, np.swapaxes(J, -1, -2))
            return filled("operational_inertia_inverse", answer.astype(M.dtype), out)
        return self._call(
            "operational_inertia_inverse",
            q,
            out=out,
            threads=threads,
            method=method,
            frame=frame,
            axes=axes,
            at=at,
        )

    def ltdl_factors(
        self, q: Array, *, out: Array = None, threads: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """L (..., nv, nv), unit lower triangular, and D (..., nv) with M = L' D L.

        As sparse as M (Featherstone 2008, section 6.5). Triangular in tree order: where a file
        lists a child before its parent, rows and columns of L are permuted with the coordinates.
        """
        return self._call("ltdl_factors", q, out=out, threads=threads)

    def ltl_factor(self, q: Array, *, out: Array = None, threads: int | None = None) -> np.ndarray:
        """L (..., nv, nv), lower triangular, with M = L' L; ordered as in `ltdl_factors`."""
        return self._call("ltl_factor", q, out=out, threads=threads)

    def operator_factors(
        self,
        q: Array,
        *,
        out: tuple[Array, Array, Array] | None = None,
        threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A, B, D (..., nv, nv) with M = A D A', M^-1 = B' D^-1 B and A B = 1.

        A and B couple each joint with those inward of it, and have 1 on the diagonal; D has a block
        for each joint, the inertia that it feels while all joints beyond it give in (Rodriguez,
        Kreutz 1988; Balafoutis, Patel 1991, Eq 6.2.18-19). If every joint has one freedom, A and D
        are L' and D of `ltdl_factors`. Not for robots with mimic joints.
        """
        return self._call("operator_factors", q, out=out, threads=threads)

    def joint_reactions(
        self,
        q: Array,
        qd: Array,
        qdd: Array,
        *,
        f_ext: Mapping[str, Any] | None = None,
        multipliers: Array = None,
        out: Array = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """What each joint's parent exerts on its child link: (..., moving joints, 6).

        (moment, force) at the joint, along the axes of the child link; rows as in `moving_joints`.
        Of a robot with loops also the forces of the loop joints count, which do not follow from the
        motion: multipliers (..., rows) as `constrained_dynamics` returns them (zeros where joint
        forces are those of `inverse_dynamics`, with which loop joints transmit nothing).
        """
        if self.model.loop_rows:
            if multipliers is None:
                raise TypeError(
                    f"joint_reactions: robot {self.name!r} has loops or couplings, whose forces "
                    "load its joints; give multipliers=, the second result of constrained_dynamics"
                )
            keys, forces = wrench_arguments(self.model, f_ext)
            compiled = self.function("closed_joint_reactions", wrenches=keys).at(self._time)
            return compiled(q, qd, qdd, multipliers, *forces, out=out, threads=threads)
        if multipliers is not None:
            self._require_loops("joint_reactions(multipliers=)")
        return self._call("joint_reactions", q, qd, qdd, out=out, threads=threads, f_ext=f_ext)

    def driving_forces(
        self,
        q: Array,
        qd: Array,
        qdd: Array,
        multipliers: Array = None,
        *,
        f_ext: Mapping[str, Any] | None = None,
        dissipation: bool = False,
        out: Array = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """Forces that move the joints of `driven_joints` as given: (..., their freedoms), N m or N.

        multipliers: of a robot with loops, as `constrained_dynamics` returns them. f_ext and
        dissipation as in `inverse_dynamics`; armature counts.
        """
        if multipliers is None:
            if self.model.loop_rows:
                raise TypeError(
                    f"driving_forces: robot {self.name!r} has loops or couplings, which exert "
                    "forces too; give multipliers, the second result of constrained_dynamics"
                )
            multipliers = np.zeros(0)
        return self._call(
            "driving_forces",
            q,
            qd,
            qdd,
            multipliers,
            out=out,
            threads=threads,
            f_ext=f_ext,
            dissipation=dissipation,
        )

    def inverse_dynamics_sensitivities(
        self,
        q: Array,
        qd: Array,
        qdd: Array,
        *,
        f_ext: Mapping[str, Any] | None = None,
        dissipation: bool = False,
        method: str = "fastest",
        out: tuple[Array, Array, Array] | None = None,
        threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """D0, V0, P0 (..., nv, nv) of d tau = D0 d qdd + V0 d qd + P0 d q, d q along `integrate`.

        The same as `derivatives("inverse_dynamics", ...)` in the order of a linearised model. f_ext
        and dissipation as in `inverse_dynamics`; what stays fixed of a wrench, as in `linearize`.
        method: "spatial" (Singh, Russell, Wensing 2022), "augmented-tensor" (Balafoutis and Patel
        1991, algorithm 7.1, for trees of any joints), "closed-form" (Eq 7.3.1-4), or "fastest".
        """
        return self._call(
            "inverse_dynamics_sensitivities",
            q,
            qd,
            qdd,
            out=out,
            threads=threads,
            method=method,
            dissipation=dissipation,
            f_ext=f_ext,
        )

    simulate = simulate
    rollout = rollout
    rollout_pullback = rollout_pullback

    def linearize(
        self,
        q: Array,
        qd: Array,
        tau: Array,
        *,
        dt: float | None = None,
        actuation: Array | Sequence[str] | None = None,
        coordinates: Coordinates = "independent",
        f_ext: Mapping[str, Any] | None = None,
        dissipation: bool = False,
        out: tuple[Array, Array] | None = None,
        threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """A (..., 2nv, 2nv) and B (..., 2nv, m) of xdot = A x + B u near a state.

        x = (d, change of qd), where d is the step along `integrate` from the motion that passes
        through the state: A = [[-ad(qd), 1], [d qdd/dq, d qdd/dqd]], with ad zero for joints whose
        steps add; B = [0; M^-1 S] and u the change of the inputs, joint forces being S u.
        actuation: S, an array (nv, m), or the names of the joints that are driven; all by default.
        dt: the pair of discrete time instead, x(t + dt) = A x + B u, exact for an input that is
        constant over dt seconds. Balafoutis and Patel 1991, Eq 7.2.3.

        Of a robot with loops x is the step and the change of velocity of its n `independent`
        freedoms, with all others along, A (..., 2n, 2n) and B (..., 2n, m); coordinates="tree"
        leaves the loops open instead. q must be closed and qd keep it so (`complete`); raises
        `chasles.OpenLoop` and `chasles.SingularPosition`.

        f_ext and dissipation as in `forward_dynamics`. The six numbers of a wrench stay fixed,
        along the axes and about the point it is given with: axes="world" keeps its direction in
        space, axes="frame" turns it with the frame; at="frame" or (x, y, z) carries its point
        along, at="world" leaves it at the world's origin.
        """
        forces: dict[str, Any] = {"f_ext": f_ext, "dissipation": dissipation}
        closed = _checked_coordinates("linearize", coordinates) == "independent"
        if closed and self.model.loop_rows:
            pair = partial(self._linearize_closed, q, qd, tau, threads=threads, **forces)
        elif self.model.loop_rows:
            pair = partial(self._opened.linearize, q, qd, tau, threads=threads, **forces)
        else:
            pair = partial(self._call, "linearize", q, qd, tau, threads=threads, **forces)
        if dt is None and actuation is None:
            return pair(out=out)
        refuse("linearize with dt= or actuation=", q, qd, tau)
        step = None if dt is None else checked_step(dt)
        S = None
        if actuation is not None:
            S = actuation_matrix(actuation, self.nv, self.velocity_slice)
        A, B = pair(out=None)
        if S is not None:
            B = B @ S.astype(B.dtype)
        if step is not None:
            A, B = discretized(A, B, step)
        return delivered("linearize", (A, B), out)

    def _linearize_closed(
        self,
        *arrays: Array,
        f_ext: Mapping[str, Any] | None,
        dissipation: bool,
        out: tuple[Array, Array] | None,
        threads: int | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        keys, forces = wrench_arguments(self.model, f_ext)
        options = {"dissipation": dissipation, "wrenches": keys}
        pair = self._closed.linearize(
            arrays, forces, tolerance=TOLERANCE, threads=threads, **options
        )
        return delivered("linearize", pair, out)

    # Inertia parameters -----------------------------------------------------------------------

    def inertial_parameters(self) -> np.ndarray:
        """Ten numbers for each of `moving_joints`, flat: what `regressor` is multiplied by.

        Of everything that the joint's child link carries rigidly, in that link's frame: mass (kg),
        first moment (3, kg m), inertia about the frame's origin (xx, yy, zz, xy, xz, yz, kg m2).
        """
        numbers: list[Any] = []
        for i in self.model.in_file_order:
            body = self.model.bodies[i]
            I = self.model.frames[body.name].placement @ body.inertia
            numbers += [I.m, *I.h, *I.I]
        return np.array(numbers, dtype=float)

    def regressor(
        self, q: Array, qd: Array, qdd: Array, *, out: Array = None, threads: int | None = None
    ) -> np.ndarray:
        """Y with `inverse_dynamics` = Y @ `inertial_parameters()`: (..., nv, 10 moving joints).

        Columns are in the order of `inertial_parameters`. Armature and dissipation, which are not
        inertia of a link, are not in it: they add armature * qdd and the resistance of the joints
        (Atkeson, An, Hollerbach 1986). Loops transmit nothing with these forces, as there.
        """
        return self._call("regressor", q, qd, qdd, out=out, threads=threads)

    def base_parameters(
        self, *, tolerance: float = 1e-8, rng: "np.random.Generator | int | None" = 0
    ) -> BaseParameters:
        """The fewest combinations of `inertial_parameters` that all joint forces depend on.

        Decided numerically, on regressors of random states with joints anywhere (limits are not
        heeded): QR with column pivoting (Gautier 1991). tolerance: the share of a column that must
        be new for it to be kept; the result says how clear the choice was. Robots that differ in
        size alone keep the same parameters. Of a robot with loops, those of its tree: closed
        motions alone may show fewer.
        """
        check_tolerance("base_parameters", tolerance)
        if not tolerance < 1.0:
            raise ValueError(f"base_parameters: tolerance must be in (0, 1), not {tolerance!r}")
        count = 20 + 40 * len(self.moving_joints) // max(self.nv, 1)
        steps, qd, qdd = random_states(self.model, count, np.random.default_rng(rng))
        Y = self.regressor(self.integrate(self.neutral(), steps), qd, qdd)
        return base_parameters(self.model, Y, tolerance)

    # Energy and momentum ----------------------------------------------------------------------

    def kinetic_energy(
        self,
        q: Array,
        qd: Array,
        *,
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """Half of qd' M qd: (...), in J. method: "spatial", "homogeneous" (traces), "fastest"."""
        return self._call("kinetic_energy", q, qd, out=out, threads=threads, method=method)

    def potential_energy(
        self, q: Array, *, method: str = "fastest", out: Array = None, threads: int | None = None
    ) -> np.ndarray:
        """Energy in the field of gravity: (...), in J; zero with the mass at the world's origin.

        method: "spatial", "homogeneous" (traces), or "fastest".
        """
        return self._call("potential_energy", q, out=out, threads=threads, method=method)

    def center_of_mass(
        self, q: Array, *, out: Array = None, threads: int | None = None
    ) -> np.ndarray:
        """The centre of mass of all moving bodies in the world: (..., 3), in m."""
        return self._call("center_of_mass", q, out=out, threads=threads)

    def momentum(
        self,
        q: Array,
        qd: Array,
        *,
        at: Literal["world", "com"] = "com",
        out: Array = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """Angular momentum about a point, then linear momentum, world axes: (..., 6).

        at: "com" (the centre of mass) or "world" (the world's origin).
        """
        if at not in ("world", "com"):
            raise ValueError(f"momentum: at must be 'com' or 'world', not {at!r}")
        return self._call("momentum", q, qd, out=out, threads=threads, at=at)

    def centroidal_momentum_matrix(
        self, q: Array, *, out: Array = None, threads: int | None = None
    ) -> np.ndarray:
        """A with momentum(at="com") = A qd: (..., 6, nv), world axes."""
        return self._call("centroidal_momentum_matrix", q, out=out, threads=threads)

    # Derivatives ------------------------------------------------------------------------------

    def derivatives(
        self,
        function: str,
        *arguments: Array,
        wrt: str | Sequence[str] | None = None,
        order: int = 1,
        f_ext: Mapping[str, Any] | None = None,
        dissipation: bool = False,
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
        **options: Any,
    ) -> Any:
        """Exact derivatives of one of this robot's functions, e.g. "inverse_dynamics".

        wrt: the name of an argument ("q", "qd", ...), giving an array; or several (by default all),
        giving a tuple in that order. Each has the shape of the function's result followed by that
        of the argument; with respect to q it is the derivative of f(integrate(q, d)) at d = 0, and
        has nv columns. order=2 gives second derivatives: for each pair of arguments, the first
        derivatives' shape followed by the second argument's.
        """
        options = order_option(function, arguments) | options
        key = ("derivatives", function, wrt, order, dissipation, method, *options.items())
        plain = f_ext is None and out is None and threads is None
        ready = _found(self._ready, key) if plain else None
        if ready is not None:
            return ready(*arguments)
        if order not in (1, 2):
            raise ValueError(f"derivatives: order must be 1 or 2, not {order!r}")
        names = derivative_names(
            function, wrt, order=options.get("order", 1), timed=self.model.timed
        )
        compiled, forces = self._derived(
            function, Derivative("jacobian", names, order), f_ext, dissipation, method, options
        )
        if plain and _hashable(key) and not compiled.timed:
            self._ready[key] = compiled.fast
        return compiled.at(self._time)(*arguments, *forces, out=out, threads=threads)

    def pullback(
        self,
        function: str,
        *arguments: Array,
        covector: Array,
        wrt: str | Sequence[str] | None = None,
        f_ext: Mapping[str, Any] | None = None,
        dissipation: bool = False,
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
        **options: Any,
    ) -> Any:
        """A covector of a function's result, pulled back to its arguments (reverse mode).

        The product of the transposed `derivatives` with `covector` (an array of the result's
        shape), at a small multiple of the function's own cost; wrt as in `derivatives`.
        """
        options = order_option(function, arguments) | options
        names = derivative_names(
            function, wrt, order=options.get("order", 1), timed=self.model.timed
        )
        compiled, forces = self._derived(
            function, Derivative("pullback", names), f_ext, dissipation, method, options
        )
        here = compiled.at(self._time)
        return here(*arguments, *forces, covector, out=out, threads=threads)

    def _derived(
        self,
        function: str,
        derivative: Derivative,
        f_ext: Mapping[str, Any] | None,
        dissipation: bool,
        method: str,
        options: Mapping[str, Any],
    ) -> tuple[Compiled, list[Any]]:
        self._refuse_open("derivatives", function)
        keys, forces = wrench_arguments(self.model, f_ext)
        compiled = self.function(
            function,
            method=method,
            dissipation=dissipation,
            wrenches=keys,
            derivative=derivative,
            **options,
        )
        return compiled, forces

    # Pictures ---------------------------------------------------------------------------------

    @property
    def plot(self) -> Plots:
        """Pictures of this robot, by name: `robot.plot.torque(q, qd, qdd, t=t)`."""
        return Plots(self)

    # Trust ------------------------------------------------------------------------------------

    def verify(self, *, seed: int = 0, states: int = 2, full: bool = False) -> Verification:
        """Check this robot's functions against each other and against physics, at random states.

        Every method of each function against the others, backends against `interpret`, Newton's and
        Euler's laws link by link, energy and power, derivatives against differences, loops closed:
        `.ok`, `.failures`, `.results` with the worst error, tolerance and seed of each. full: also
        what takes long (docs/verify.md).
        """
        return verify(self, seed=seed, states=states, full=full)

    # Showing ----------------------------------------------------------------------------------

    def show(self, **options: Any) -> Any:
        """Show the robot in a browser: sliders, overlays, motions; returns the running view.

        beside: another robot. motion: a file of `chasles simulate`, or one as docs/motion.md says.
        host, port: where the page is; by default only this machine sees it. A notebook shows the
        result; its `url` is the page, its `stop()` the end, and a script stays for it with
        `wait()`. Needs `pip install 'chasles[view]'`.
        """
        return import_module("chasles.view").show(self, **options)  # above this layer

    # Compiling --------------------------------------------------------------------------------

    def function(
        self,
        function: str,
        *,
        backend: str = "llvm",
        method: str = "fastest",
        dissipation: bool = False,
        wrenches: tuple[WrenchKey, ...] = (),
        derivative: Derivative | None = None,
        parameters: Sequence[str] = (),
        dtype: str = "float64",
        **options: Any,
    ) -> Compiled:
        """The compiled function with these options, made once.

        Of a robot with loops, not those that a program of the tree would leave open.
        """
        self._refuse_open("function", function)
        model = self._model_for(function)
        chosen = checked_options(model, function, options)
        for name in parameters:
            shape(self.model.source, name)
        if dtype not in ("float64", "float32"):
            raise ValueError(f"dtype must be 'float64' or 'float32', not {dtype!r}")
        free = tuple(dict.fromkeys(parameters))
        key = (function, method, backend, dissipation, wrenches, chosen, derivative, free, dtype)
        found = self._compiled.get(key)
        if found is not None:
            return found
        with COMPILING:
            found = self._compiled.get(key)
            if found is None:
                recipe = Recipe(model.source, self._mimic, *key)
                found = self._compiled[key] = Compiled(recipe, model)
        return found

    def _model_for(self, function: str) -> Model:
        """The mechanism as a function needs it: with a closure chosen, if it is of closed loops."""
        if function not in CLOSED_LOOPS or self.model.source.closure is not None:
            return self.model
        self._require_loops(function)
        return self._solver.model

    def _call(
        self,
        function: str,
        *arguments: Array,
        out: Array,
        threads: int | None,
        f_ext: Mapping[str, Any] | None = None,
        method: str = "fastest",
        dissipation: bool = False,
        **options: Any,
    ) -> Any:
        key = (function, method, dissipation, *options.items())
        plain = f_ext is None and out is None and threads is None
        ready = _found(self._ready, key) if plain else None
        if ready is not None:
            return ready(*arguments)
        keys, forces = wrench_arguments(self.model, f_ext)
        compiled = self.function(
            function, method=method, dissipation=dissipation, wrenches=keys, **options
        )
        if compiled.timed:
            return compiled.at(self._time)(*arguments, *forces, out=out, threads=threads)
        if not keys and not options and not dissipation and method == "fastest":
            self._install(compiled)
            self._ready[key] = compiled  # for what the fast entry does not take
        elif plain and _hashable(key):
            self._ready[key] = compiled.fast
        return compiled(*arguments, *forces, out=out, threads=threads)

    def _install(self, compiled: Compiled) -> None:
        """From the first plain call on, the method is the compiled function's fast entry."""
        name = compiled.recipe.function
        if name not in self.__dict__:
            method = getattr(self, name)
            self.__dict__[name] = compiled.entry(holder=self, fallback=method)


def _checked_coordinates(function: str, coordinates: str) -> str:
    if coordinates not in get_args(Coordinates):
        raise ValueError(
            f'{function}: coordinates must be "tree" or "independent", not {coordinates!r}'
        )
    return coordinates


def _found(
    ready: Mapping[Any, Callable[..., Any]], key: tuple[Any, ...]
) -> Callable[..., Any] | None:
    try:
        return ready.get(key)
    except TypeError:
        return None


def _hashable(key: tuple[Any, ...]) -> bool:
    """Whether a call's options can be a key (a point given as a list cannot)."""
    try:
        hash(key)
    except TypeError:
        return False
    return True


def _rates_of_order(function: str, order: int, q: Array, qd: Array, qdd: Array) -> list[Array]:
    """The arrays for first or second order: no qdd too few or too many."""
    if isinstance(order, bool) or order not in (1, 2):
        raise ValueError(
            f"{function}: order must be 1 or 2, not {order!r}; chasles.compile takes any order"
        )
    if order == 2 and qdd is None:
        raise TypeError(f"{function}: order=2 needs qdd: give q, qd, qdd")
    if order == 1 and qdd is not None:
        raise TypeError(f"{function}: order=1 takes no qdd; leave it out, or ask for order=2")
    return [q, qd] if qdd is None else [q, qd, qdd]


def _rebuild(source: Description, mimic: bool, time: np.ndarray | None = None) -> Robot:
    """A robot, at a time if it is given one and depends on it."""
    made = Robot(source, mimic=mimic)
    return made if time is None or not made.model.timed else made.at_time(time)
