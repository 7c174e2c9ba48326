"""Changed robots: every edit makes a new one."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np

from chasles import mechanisms
from chasles.backends.arrays import check_tolerance
from chasles.errors import ArgumentError, InputError
from chasles.functions.doors import check_robot
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia
from chasles.model import CouplingData, Description, LoopData, edit
from chasles.model.couplings import Motion, motion
from chasles.model.given import a_generator, a_mapping, a_number, some_names, some_numbers
from chasles.model.parameters import JOINT_NUMBERS, edited, edited_shape
from chasles.model.ranges import value_fault
from chasles.model.validate import inertia_fault
from chasles.robot.derived import Deriving
from chasles.robot.identity import Array, rebuilt


class Editing(Deriving):
    """Edits of the mechanism."""

    def lock(self, positions: Mapping[str, Any] | str | Iterable[str]) -> Self:
        """Return the robot with some joints fixed.

        positions: {joint: position}, each with the joint's nq numbers; or the name of a joint, or
        names of several, which are fixed where they are in `neutral()`.
        """
        if not isinstance(positions, Mapping):
            q = self.neutral()
            names = some_names("positions", positions, "lock")
            positions = {name: q[self.position_slice(name)] for name in names}
        values = {}
        for name, value in positions.items():
            entries = np.atleast_1d(some_numbers(f"joint {name!r}", value, "lock"))
            where = self.position_slice(name)
            count = where.stop - where.start
            if not _is_finite(entries, count):
                problem = f"joint {name!r} needs {count} finite numbers, not {value!r}"
                raise InputError("E-ROBOT-006", problem, part="lock")
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
    ) -> Self:
        """The robot with a payload fixed to a frame.

        mass in kg; center: its centre of mass in the frame, in m; inertia: 3x3 about its centre of
        mass along the frame's axes, in kg m2 (a point mass if omitted).
        """
        tensor = np.zeros((3, 3)) if inertia is None else some_numbers("inertia", inertia, "attach")
        point, mass = some_numbers("center", center, "attach"), a_number("mass", mass, "attach")
        if not (
            _is_finite(tensor, 3, 3) and _is_finite(point, 3) and np.allclose(tensor, tensor.T)
        ):
            problem = "center must be 3 finite numbers and inertia a symmetric 3x3 matrix"
            raise InputError("E-ROBOT-007", problem, part="attach")
        if wrong := value_fault("link.mass", mass):
            raise InputError("E-ROBOT-041", wrong, part="attach")
        fault = inertia_fault(float(mass), tensor)
        if fault is not None and fault.check == "not-positive":
            raise InputError(
                "E-ROBOT-042", fault.what, "check the signs of the inertia", part="attach"
            )
        entries = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
        about = Symmetric(*(float(tensor[entry]) for entry in entries))
        payload = RigidInertia.from_center(mass, Vector(tuple(map(float, point))), about)
        return self._changed(edit.attach(self.model, frame, name, payload))

    def drive(self, motions: Mapping[str, Motion]) -> Self:
        """The robot with joints that move in time as given: {joint: function of the time in s}.

        A function gives the joint's coordinate, in rad or m (or all of them where it has several),
        and is written with arithmetic and the functions of `chasles.expr`; it is run once. A driven
        joint has no coordinates (rheonomic, Featherstone 2008, section 3.5); what moves it are its
        `driving_forces`. Ask the new robot `at_time`. One freedom of a universal, cylindrical or
        yaw_pitch_roll joint is driven by its name, "joint[0]"; the others keep theirs, as joints.
        """
        each = a_mapping("motions", motions, "drive").items()
        return self._changed(edit.drive(self.model, {n: motion(f, joint=n) for n, f in each}))

    def with_parameters(self, values: Mapping[str, Any]) -> Self:
        """Return the robot with other numbers.

        Parameters
        ----------
        values : mapping from name to number or array
            `<link>.mass` (kg), `<link>.center` (3, m, link frame), `<link>.inertia` (3x3, kg m2,
            about the centre of mass along the link's axes), `<joint>.placement` (4x4, pose of the
            joint in its parent link), `<joint>.armature`, `<joint>.damping`, `<joint>.friction`,
            and `gravity` (3, m/s2). The names of `chasles.compile(parameters=)` are among them. Or
            the result of `chasles.identify`.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.puma560()
        >>> heavier = robot.with_parameters({"link3.mass": 6.0})
        >>> round(heavier.mass - robot.mass, 6)
        1.2
        """
        given = a_mapping("values", getattr(values, "parameters", values), "with_parameters")
        flat: dict[str, list[float]] = {}
        for name, value in given.items():
            size = edited_shape(self.model.source, name)
            array = some_numbers(name, value, "with_parameters")
            if not _is_finite(array, *size):
                problem = f"{name} must be finite with shape {size}, not {array.shape}"
                raise InputError("E-ROBOT-060", problem, part="with_parameters")
            part, _, what = name.rpartition(".")
            key = {"mass": "link.mass"}.get(what) or f"joint.{what}" * (what in JOINT_NUMBERS)
            if key and (wrong := value_fault(key, float(array))):
                raise InputError("E-ROBOT-061", f"{part}: {wrong}", part="with_parameters")
            flat[name] = [float(x) for x in array.ravel()]
        source = edited(self.model.source, flat)
        self._check_inertias(source, flat)
        return self._changed(source)

    def _check_inertias(self, source: Description, changed: Iterable[str]) -> None:
        """Raise for a changed link whose inertia no body can have."""
        names = {name.rpartition(".")[0] for name in changed}
        for link in source.links:
            if link.name in names:
                m, _, about = link.inertia.about_center()
                tensor = np.array(about.matrix().rows, dtype=float)
                fault = inertia_fault(float(m), tensor)
                if fault is not None and fault.check not in ("singular",):
                    raise InputError(
                        "E-ROBOT-062", f"link {link.name!r}: {fault.what}", part="with_parameters"
                    )

    def subtree(self, link: str, *, floating: bool = False) -> Self:
        """The part of the robot that hangs on a link; the link is held fixed, or floats."""
        return self._changed(edit.subtree(self.model, link, floating=floating))

    def with_gravity(self, gravity: Array) -> Self:
        """The robot in another field of gravity: three numbers in m/s2, world axes."""
        g = some_numbers("gravity", gravity, "with_gravity")
        if not _is_finite(g, 3):
            problem = f"give three finite numbers, not {gravity!r}"
            raise InputError("E-ROBOT-009", problem, part="with_gravity")
        return self._changed(gravity=Vector(tuple(float(x) + 0.0 for x in g)))  # no -0.0

    def simplified(self) -> Self:
        """A robot with the same equation of motion and fewer inertia parameters that are not zero.

        The part of a link's inertia that its joint does not feel moves to the link before it
        (dynamic equivalence, Featherstone 2008, section 9.7). Joint forces, accelerations and
        kinetic energy stay the same, as `is_equivalent` checks; reactions do not, nor does what
        belongs to mass that went into a fixed base: momentum, centre of mass, a constant of
        potential energy. Masses may come out zero or negative. Functions with method="fastest" do
        this by themselves: it is for other programs, and for those who want to see it.
        """
        return self._changed(edit.simplified(self.model))

    def with_independent(self, *freedoms: str) -> Self:
        """The robot with other freedoms for `independent`, in the order of the coordinates.

        Raises `chasles.LockedMechanism` for a freedom that the loops lock.
        """
        some_names("a degree of freedom", freedoms, "with_independent")
        self.mechanism.loops.select(freedoms)
        return self._changed(independent=freedoms)

    def with_loops(self, *loops: LoopData) -> Self:
        """The robot with more loops closed, each by a joint of any type or a weld.

        For example the feet of a robot that stands: `LoopData("left", "fixed", None, "left_foot",
        pose, child_pose=...)` welds a frame of link "left_foot" to a pose in the world.
        """
        for loop in loops:
            if not isinstance(loop, LoopData):
                problem = f"give LoopData(...), not {type(loop).__name__}"
                raise ArgumentError("E-ROBOT-011", problem, part="with_loops")
        return self._changed(loops=self.model.source.loops + loops, independent=())

    def with_couplings(self, *couplings: CouplingData) -> Self:
        """The robot with more equations between its coordinates.

        `chasles.model.gear("drive", "wheel", {"motor": 0.01})` is wheel = 0.01 motor, and
        `chasles.model.coupling("cam", ["lever", "shaft"], function)` is any function(lever, shaft)
        = 0 that is written with `chasles.expr`, or function(lever, shaft, t) = 0 that depends on
        time: then ask the new robot `at_time`. In `loop_residual` and the like their rows follow
        those of the loops; all that is said of loops is true of them.
        """
        for data in couplings:
            if not isinstance(data, CouplingData):
                problem = f"give gear(...) or coupling(...), not {type(data).__name__}"
                raise ArgumentError("E-ROBOT-012", problem, part="with_couplings")
        more = self.model.source.couplings + couplings
        return self._changed(couplings=more, independent=())

    def is_equivalent(
        self,
        other: Self,
        *,
        tolerance: float = 1e-9,
        rng: "np.random.Generator | int | None" = 0,
    ) -> bool:
        """Return True if another robot with the same joints has the same equation of motion.

        Compares the joint forces of random motions and the mass matrices, with joints anywhere; of
        robots with loops or couplings, whether positions that close the one close the other, how
        many freedoms they leave, and accelerations from there. tolerance is relative to the largest
        entry. Damping and friction are left out.
        """
        check_robot("is_equivalent", other)
        check_tolerance("is_equivalent", tolerance)
        mine, theirs = (
            [robot.joint(n).traits.kind for n in robot.joints] for robot in (self, other)
        )
        if mine != theirs:
            return False
        rng = a_generator(rng, "is_equivalent")
        return mechanisms.equivalent(self.mechanism, other.mechanism, tolerance, rng)

    def _changed(self, source: Description | None = None, **fields: Any) -> Self:
        """The robot of another description, or of its own with other fields."""
        changed = replace(source or self.model.source, **fields)
        changed = replace(changed, sensors=edit.sensors_left(changed))
        return rebuilt(type(self), changed, self.mimic, self.mechanism.t)


def _is_finite(array: np.ndarray, *shape: int) -> bool:
    """Return True for finite numbers of a shape."""
    return array.shape == shape and bool(np.all(np.isfinite(array)))
