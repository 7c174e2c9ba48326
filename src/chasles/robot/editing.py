"""Robot methods that return a modified robot."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np

from chasles.errors import ArgumentError, InputError
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia
from chasles.model import CouplingData, Description, LoopData, edit
from chasles.model.couplings import Motion, motion
from chasles.model.given import a_mapping, a_number, some_names, some_numbers, value_fault
from chasles.model.parameters import JOINT_NUMBERS, shape, substituted
from chasles.model.validate import inertia_fault
from chasles.robot.identity import Array, rebuilt
from chasles.robot.parameters import Parametric


class Editing(Parametric):
    """Robot methods that return a modified robot."""

    def lock(self, positions: Mapping[str, Any] | str | Iterable[str]) -> Self:
        """Return the robot with some joints fixed.

        Parameters
        ----------
        positions : mapping from str to array_like, str or sequence of str
            Positions (rad or m) by joint name, or names of joints to fix at `neutral()`.

        Returns
        -------
        Robot
            Robot without the coordinates of these joints.

        Raises
        ------
        ModelError
            If a joint in `positions` does not exist, if it mimics another joint, or if a
            coupling does not hold with the locked joints.
        InputError
            If a position does not have one finite number per coordinate.
        ArgumentError
            If `positions` is not a mapping, a name or a sequence of names, or if a position is not
            numeric.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.puma560().lock({"joint6": 0.5}).nq
        5
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
                problem = f"joint {name!r} requires {count} finite positions, not {value!r}"
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
        """Return the robot with a payload fixed to a frame.

        Parameters
        ----------
        frame : str
            Name of a link or frame.
        mass : float
            Mass (kg).
        center : array_like, shape (3,), optional
            Center of mass in the frame (m).
        inertia : array_like, shape (3, 3), optional
            Inertia about the center of mass, in frame axes (kg m2). Default: a point mass.
        name : str, optional
            Name of the payload.

        Returns
        -------
        Robot
            Robot with the payload.

        Raises
        ------
        InputError
            If `mass` is not zero or positive, if `center` is not three finite numbers, or if
            `inertia` is not a symmetric 3x3 matrix that a body can have.
        ArgumentError
            If a value is not numeric, or if `name` is not a string.
        ModelError
            If the frame does not exist, if the frame does not move, or if the robot already has a
            frame with the name of the payload.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.planar(2).attach("tip", mass=0.5).mass
        2.5
        """
        tensor = np.zeros((3, 3)) if inertia is None else some_numbers("inertia", inertia, "attach")
        point, mass = some_numbers("center", center, "attach"), a_number("mass", mass, "attach")
        if not (
            _is_finite(tensor, 3, 3) and _is_finite(point, 3) and np.allclose(tensor, tensor.T)
        ):
            problem = "`center` must be 3 finite numbers and `inertia` a symmetric 3x3 matrix"
            raise InputError("E-ROBOT-007", problem, part="attach")
        if wrong := value_fault("link.mass", mass):
            raise InputError("E-ROBOT-041", wrong, part="attach")
        fault = inertia_fault(float(mass), tensor)
        if fault is not None and fault.check == "not-positive":
            raise InputError(
                "E-ROBOT-042", fault.what, "check the entries of `inertia`", part="attach"
            )
        entries = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
        about = Symmetric(*(float(tensor[entry]) for entry in entries))
        payload = RigidInertia.from_center(mass, Vector(tuple(map(float, point))), about)
        return self._changed(edit.attach(self.model, frame, name, payload))

    def drive(self, motions: Mapping[str, Motion]) -> Self:
        """Return the robot with prescribed joint motions.

        Parameters
        ----------
        motions : mapping from str to callable
            For each joint, a function that maps time (s) to the joint coordinates (rad or m). The
            function is traced once and may use only arithmetic and functions from `chasles.expr`.
            Use names such as "joint[0]" to drive a single coordinate of a universal, cylindrical,
            yaw_pitch_roll or planar joint.

        Returns
        -------
        Robot
            Robot without the coordinates of these joints (rheonomic constraints, Featherstone 2008,
            section 3.5). `driving_forces` returns the torques that produce the prescribed motions.
            Call functions on `robot.at_time(t)`.

        Raises
        ------
        ArgumentError
            If `motions` is not a dictionary of functions with string keys.
        ModelError
            If a joint in `motions` does not exist, if the motion of a joint cannot be prescribed,
            or if a function fails for a symbolic time or returns the wrong number of values.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.planar(2).drive({"joint1": lambda t: 0.1 * t})
        >>> robot.at_time(1.0).nq
        1
        """
        each = a_mapping("motions", motions, "drive").items()
        return self._changed(edit.drive(self.model, {n: motion(f, joint=n) for n, f in each}))

    def with_parameters(self, values: Mapping[str, Any]) -> Self:
        """Return the robot with changed model parameters.

        Parameters
        ----------
        values : mapping from name to number or array
            `<link>.mass` (kg), `<link>.center` (3, m, link frame), `<link>.inertia` (3x3, kg m2,
            about the center of mass along the link's axes), `<joint>.placement` (4x4, pose of the
            joint in its parent link), `<joint>.armature`, `<joint>.damping`, `<joint>.friction`,
            and `gravity` (3, m/s2). All names accepted by `chasles.compile(parameters=)` are
            allowed. A result of `chasles.identify` may be passed instead of a mapping.

        Returns
        -------
        Robot
            Robot with these parameters.

        Raises
        ------
        ModelError
            If a parameter in `values` does not exist.
        InputError
            If a value has the wrong shape, is not finite or is out of range, or if no body can have
            the inertia of a link.
        ArgumentError
            If `values` is not a dictionary with string keys, or if a value is not numeric.

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
            size = shape(self.model.source, name)
            array = some_numbers(name, value, "with_parameters")
            if not _is_finite(array, *size):
                problem = f"{name} must be finite with shape {size}, not {array.shape}"
                raise InputError("E-ROBOT-060", problem, part="with_parameters")
            part, _, what = name.rpartition(".")
            key = {"mass": "link.mass"}.get(what) or f"joint.{what}" * (what in JOINT_NUMBERS)
            if key and (wrong := value_fault(key, float(array))):
                raise InputError("E-ROBOT-061", f"{part}: {wrong}", part="with_parameters")
            flat[name] = [float(x) for x in array.ravel()]
        source = substituted(self.model.source, flat)
        self._check_inertias(source, flat)
        return self._changed(source)

    def _check_inertias(self, source: Description, changed: Iterable[str]) -> None:
        """Raise an error if a changed link has a physically impossible inertia."""
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
        """Return the subtree of the robot that starts at a link.

        Parameters
        ----------
        link : str
            Root link of the subtree.
        floating : bool, optional
            Connect the link to the world by a free joint. Default: fix it to the world.

        Returns
        -------
        Robot
            Robot that consists of the subtree.

        Raises
        ------
        ModelError
            If the link does not exist, or if a joint in the subtree mimics a joint
            outside.
        ArgumentError
            If `link` is not a string.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.puma560().subtree("link3").nq
        3
        """
        return self._changed(edit.subtree(self.model, link, floating=floating))

    def with_gravity(self, gravity: Array) -> Self:
        """Return the robot with a new gravity vector.

        Parameters
        ----------
        gravity : array_like, shape (3,)
            Acceleration of gravity (m/s2) in world axes.

        Returns
        -------
        Robot
            Robot with this gravity.

        Raises
        ------
        InputError
            If `gravity` is not three finite numbers.
        ArgumentError
            If `gravity` is not numeric.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.planar(2).with_gravity((0, 0, -1.62)).gravity
        array([ 0.  ,  0.  , -1.62])
        """
        g = some_numbers("gravity", gravity, "with_gravity")
        if not _is_finite(g, 3):
            problem = f"`gravity` must be three finite numbers, not {gravity!r}"
            raise InputError("E-ROBOT-009", problem, part="with_gravity")
        return self._changed(gravity=Vector(tuple(float(x) + 0.0 for x in g)))  # turn -0.0 into 0.0

    def simplified(self) -> Self:
        """Return an equivalent robot with fewer nonzero inertial parameters.

        Returns
        -------
        Robot
            Robot with the same equations of motion. The part of a link's inertia that does not
            affect its joint is moved to the parent link. Masses may be zero or negative.

        Notes
        -----
        The two robots are dynamically equivalent (Featherstone 2008, section 9.7). Joint torques,
        accelerations and kinetic energy are unchanged, which `is_equivalent` checks. Joint
        reactions, momentum, the center of mass and the zero of potential energy change. Functions
        with method="fastest" simplify the robot automatically. Call `simplified` to export or
        inspect the parameters.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.planar(2)
        >>> robot.is_equivalent(robot.simplified())
        True
        """
        return self._changed(edit.simplified(self.model))

    def with_independent(self, *freedoms: str) -> Self:
        """Return the robot with other independent coordinates.

        Parameters
        ----------
        *freedoms : str
            Names of joints. For a joint with several degrees of freedom, append the index of one of
            them, as in "joint[0]".

        Returns
        -------
        Robot
            Robot with these independent coordinates, in the order of qd.

        Raises
        ------
        LockedMechanism
            If the loops lock one of these coordinates.
        ModelError
            If a coordinate in `freedoms` does not exist, or if these coordinates do not determine
            all others.
        ArgumentError
            If a name is not a string.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.four_bar().with_independent("rocker").independent
        ('rocker',)
        """
        some_names("a degree of freedom", freedoms, "with_independent")
        self.mechanism.loops.select(freedoms)
        return self._changed(independent=freedoms)

    def with_loops(self, *loops: LoopData) -> Self:
        """Return the robot with additional closed loops.

        Parameters
        ----------
        *loops : LoopData
            Joints that close the loops, one per loop, of any type. For example,
            `LoopData("left", "fixed", None, "left_foot", pose, child_pose=...)` welds a frame of
            link "left_foot" to a pose in the world.

        Returns
        -------
        Robot
            Robot with these loops.

        Raises
        ------
        ArgumentError
            If an argument is not a loop.
        ModelError
            If a loop refers to links that the robot does not have.

        Examples
        --------
        >>> import chasles
        >>> from chasles.model import LoopData
        >>> weld = LoopData("weld", "fixed", None, "link2")
        >>> chasles.robots.planar(2).with_loops(weld).loops
        ('weld',)
        """
        for loop in loops:
            if not isinstance(loop, LoopData):
                problem = f"a loop must be LoopData(...), not {type(loop).__name__}"
                raise ArgumentError("E-ROBOT-011", problem, part="with_loops")
        return self._changed(loops=self.model.source.loops + loops, independent=())

    def with_couplings(self, *couplings: CouplingData) -> Self:
        """Return the robot with additional equations between its coordinates.

        Parameters
        ----------
        *couplings : CouplingData
            Equations created by `chasles.model.gear` or `chasles.model.coupling`. `gear("drive",
            "wheel", {"motor": 0.01})` means wheel = 0.01 motor. `coupling("cam", ["lever",
            "shaft"], function)` means function(lever, shaft) = 0 or function(lever, shaft, t) = 0.
            The function may use `chasles.expr`.

        Returns
        -------
        Robot
            Robot with these couplings. In `loop_residual` and similar functions, the rows of
            couplings follow those of loops. If a coupling depends on time, call functions on
            `robot.at_time(t)`.

        Raises
        ------
        ArgumentError
            If an argument is not a coupling.
        ModelError
            If a coupling refers to coordinates or frames that the robot does not have.

        Examples
        --------
        >>> import chasles
        >>> from chasles.model import gear
        >>> robot = chasles.robots.planar(2).with_couplings(gear("gear", "joint2", {"joint1": 2.0}))
        >>> int(robot.mobility())
        1
        """
        for data in couplings:
            if not isinstance(data, CouplingData):
                problem = (
                    f"a coupling must be gear(...) or coupling(...), not {type(data).__name__}"
                )
                raise ArgumentError("E-ROBOT-012", problem, part="with_couplings")
        more = self.model.source.couplings + couplings
        return self._changed(couplings=more, independent=())

    def _changed(self, source: Description | None = None, **fields: Any) -> Self:
        """Return a robot built from a description with some fields replaced.

        By default, `source` is the description of this robot.
        """
        changed = replace(source or self.model.source, **fields)
        changed = replace(changed, sensors=edit.sensors_left(changed))
        return rebuilt(type(self), changed, self.mimic, self.mechanism.t)


def _is_finite(array: np.ndarray, *shape: int) -> bool:
    """Return True if an array is finite and has a given shape."""
    return array.shape == shape and bool(np.all(np.isfinite(array)))
