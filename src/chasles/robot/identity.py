"""Base class of `Robot`: names, dimensions, limits, and function calls."""

import operator
import threading
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from chasles import mechanisms
from chasles.backends import learn
from chasles.errors import shown
from chasles.functions.callers import learnable, target
from chasles.functions.compiled import entry_of
from chasles.mechanisms import Cluster, Mechanism, Named, clusters
from chasles.model import Description, JointData, ModelError, build
from chasles.model.given import a_name
from chasles.model.parameters import nominal, shape
from chasles.model.tool import tool
from chasles.names import FUNCTIONS, foreign, one_of, similar
from chasles.robot.html import as_html
from chasles.robot.machine import Actuators, Keyframe, Limits, keyframes

Array = Any
"""NumPy, PyTorch, JAX or CuPy array, or any array_like. Results are arrays of the same library,
although they are annotated as `np.ndarray` for brevity.
"""


class Identity(Named):
    """Base class of `Robot`, with its model and the `Mechanism` that evaluates its functions."""

    def __init__(self, source: Description, *, mimic: bool = True, strict: bool = False) -> None:
        self._begin(mechanisms.of(build(source, mimic=mimic, strict=strict)))

    def _begin(self, mechanism: Mechanism) -> None:
        """Initialize the robot from a mechanism, even if a subclass has a different `__init__`."""
        self.mechanism: Mechanism = mechanism
        """Object that evaluates the functions of the robot."""
        self.model = mechanism.model
        self.mimic: bool = mechanism.model.mimic
        """True if mimic joints follow their leader; False if they have independent coordinates."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return rebuilt, (type(self), self.model.source, self.mimic, self.mechanism.t)

    if not TYPE_CHECKING:  # type checkers report unknown names themselves

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, with a suggestion for names used in other libraries."""
            kind = type(self).__name__
            problem = f"{kind!r} object has no attribute {name!r}"
            if name.startswith("_"):
                raise AttributeError(problem, name=name, obj=self)
            if name in FUNCTIONS:
                raise AttributeError(f"{problem}; use chasles.{name}(robot, ...)", name=name)
            known = [each for each in dir(type(self)) if each != name and each[0] != "_"]
            hint = foreign(name, known) or similar(name, known)
            raise AttributeError(f"{problem}; {hint}" if hint else problem, name=name)

    def __repr__(self) -> str:
        loops = f", loops {len(self.loops)}" if self.loops else ""
        loops += f", couplings {len(self.couplings)}" if self.couplings else ""
        name = shown(repr(self.name))
        return f"<Robot {name}: {len(self.joints)} joints, nq {self.nq}, nv {self.nv}{loops}>"

    def _repr_html_(self) -> str:
        return as_html(self.model, repr(self), self.tool, self.notes)

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of all links, in file order."""
        return tuple(link.name for link in self.model.source.links)

    @property
    def moving_joints(self) -> tuple[str, ...]:
        """Names of the moving joints in file order, including mimic joints."""
        return tuple(self.model.bodies[i].data.name for i in self.model.in_file_order)

    @property
    def loops(self) -> tuple[str, ...]:
        """Names of the joints that close loops. These joints have no coordinates."""
        return tuple(loop.name for loop in self.model.loops)

    @property
    def couplings(self) -> tuple[str, ...]:
        """Names of the couplings (equations that relate joint coordinates, such as gear ratios)."""
        return tuple(coupling.name for coupling in self.model.couplings)

    @property
    def independent(self) -> tuple[str, ...]:
        """Independent coordinates, which determine all other coordinates through the loops.

        A coordinate has the name of its joint, with an index if the joint has several degrees of
        freedom, as in "joint[0]". The coordinates are selected once, from the rank of the loop
        matrix at closed configurations. Earlier joints are preferred. Use `with_independent` to
        select other coordinates. Without loops, all coordinates are independent.
        """
        return self.mechanism.independent

    @property
    def independent_positions(self) -> tuple[str, ...]:
        """Names of the coordinates that `assemble` takes as input.

        All `independent` coordinates are included. A robot with rolling constraints
        (`chasles.model.rolling`) has additional ones, because rolling constrains velocities but
        not positions.
        """
        loops = self.mechanism.loops
        return tuple(loops.freedoms[k] for k in loops.positions.independent)

    @property
    def mass(self) -> float:
        """Total mass of all links (kg), including links fixed to the world."""
        return float(sum(link.inertia.m for link in self.model.source.links))

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of all links and frames, which are valid values of the argument `frame`."""
        return tuple(self.model.frames)

    @property
    def tool(self) -> str:
        """Default frame for functions with a `frame` argument.

        The default is a frame named tool, tcp or end_effector (or similar, with any prefix) if
        there is one. Otherwise, the default is the platform of a parallel robot, or the last frame
        of the first longest chain, without gripper fingers and sensors.
        """
        return tool(self.model)

    @property
    def gravity(self) -> np.ndarray:
        """Gravitational acceleration in world axes (m/s2)."""
        return np.array(list(self.model.gravity_vector))

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages from loading the file about assumptions, repairs and suspicious values.

        For a robot with loops, the notes also list loop equations that were dropped because other
        equations imply them to within the precision of the file.
        """
        return (*self.model.notes, *self.mechanism.loops.notes)

    @cached_property
    def limits(self) -> Limits:
        """Joint limits.

        The limits of a universal or yaw-pitch-roll joint apply to each of its angles. Joints with
        quaternions, or with both angles and lengths, have no limits. The position and velocity
        limits of a joint are narrowed so that the joints that mimic it stay within their own
        limits. The limits of a mimic joint are ignored, and listed in `notes`, if no position of
        the joint that it mimics satisfies them. Effort limits of mimic joints do not apply, because
        the generalized force is the sum of all efforts.
        """
        model = self.model
        q, v = np.full((2, model.nq), np.inf), np.full((2, model.nv), np.inf)
        q[0] = -np.inf
        for i in model.movers:
            given, joint = model.limits[i], model.bodies[i].joint
            if set(joint.units) in ({"rad"}, {"m"}) and joint.nq == joint.nv:
                q[:, model.position_slices[i]] = [[given.lower], [given.upper]]
                v[:, model.velocity_slices[i]] = [[given.velocity], [given.effort]]
        return Limits(*q, *v)

    @cached_property
    def actuators(self) -> Actuators:
        """Names and ranges of the actuators, in the order of the controls `ctrl`."""
        return Actuators(self.model.source.actuators)

    def activations(self, act: Array = None) -> Array:
        """Return the given activations, or zeros if none are given.

        Parameters
        ----------
        act : array_like, shape (..., na), optional
            Activations.

        Returns
        -------
        ndarray, shape (..., na)
            Activations. The shape is (na,) if `act` is None.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.planar(2).activations(None).shape
        (0,)
        """
        return np.zeros(len(self.actuators.active)) if act is None else act

    @cached_property
    def keyframes(self) -> Mapping[str, Keyframe]:
        """Keyframes: named states of the robot, each with q, qd, ctrl and act."""
        return keyframes(self.model)

    def joint(self, name: str) -> JointData:
        """Return the data of a joint.

        Parameters
        ----------
        name : str
            Name of the joint.

        Returns
        -------
        JointData
            Type, axis, limits, damping, friction, mimic relation and more.

        Raises
        ------
        ModelError
            If the joint does not exist.
        ArgumentError
            If `name` is not a string.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.planar(2).joint("joint1").kind
        'revolute'
        """
        a_name("a joint", name)
        for data in self.model.source.joints:
            if data.name == name:
                return data
        remedy, part = one_of(name, self.joints), f"robot {self.name!r}"
        raise ModelError("E-ROBOT-005", f"no joint {name!r}", remedy, part=part)

    def parameter(self, name: str) -> np.ndarray:
        """Return the value of a model parameter.

        Parameters
        ----------
        name : str
            "<link>.mass" (kg), "<link>.center" (m), "<link>.inertia" (kg m2), "<joint>.placement",
            "gravity" (m/s2), or another name accepted by `chasles.compile(..., parameters=...)`.

        Returns
        -------
        ndarray
            Value in the documented unit, with shape () for a mass, (3,) for a center or gravity,
            (3, 3) for an inertia, and (4, 4) for a placement.

        Raises
        ------
        ModelError
            If the parameter does not exist.
        ArgumentError
            If `name` is not a string.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.planar(2).parameter("gravity")
        array([ 0.  ,  0.  , -9.81])
        """
        return np.array(nominal(self.model.source, name)).reshape(shape(self.model.source, name))

    def loop_clusters(self) -> tuple[Cluster, ...]:
        """Group the loops and couplings that share joints into clusters.

        Returns
        -------
        tuple of (loops, joints)
            For each cluster, the names of its loops and couplings, and the names of its joints. The
            motion of a cluster does not depend on the coordinates of other clusters (Featherstone
            2008, section 8.9). Joints that do not belong to a cluster are unconstrained.

        Examples
        --------
        >>> import chasles
        >>> len(chasles.robots.four_bar().loop_clusters())
        1
        """
        return clusters(self.model)

    def at_time(self, t: Array) -> Self:
        """Return a time-dependent robot at a fixed time.

        Parameters
        ----------
        t : array_like, shape (...)
            Time (s), which broadcasts with the other arguments of a function.

        Returns
        -------
        Robot
            Robot at this time. The independent coordinates are selected at t = 0 and do not depend
            on `t`.

        Raises
        ------
        ModelError
            If the robot does not depend on time.
        ArgumentError
            If `t` is not a number or an array of numbers.
        InputError
            If `t` is not finite.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.planar(2).drive({"joint1": lambda t: 0.1 * t})
        >>> robot.at_time(1.0).forward_kinematics([0.5], "tip").shape
        (4, 4)
        """
        held = self.at(t)
        if held is self:
            problem = f"robot {self.name!r} does not depend on time"
            remedy = "omit `at_time` and call the methods of the robot directly"
            raise ModelError("E-ROBOT-008", problem, remedy, part="at_time")
        return held

    def at(self, t: Array) -> Self:
        """Return the robot at a fixed time, or the robot itself if it does not depend on time.

        Parameters
        ----------
        t : array_like, shape (...)
            Time (s).

        Returns
        -------
        Robot
            Robot at this time.

        Raises
        ------
        ArgumentError
            If the robot depends on time, and `t` is not a number or an array of numbers.
        InputError
            If the robot depends on time, and `t` is not finite.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.planar(2)
        >>> robot.at(1.0) is robot
        True
        """
        mechanism = self.mechanism.at(t)
        return self if mechanism is self.mechanism else of_mechanism(type(self), mechanism)

    # Function calls -----------------------------------------------------------------------------

    def _call(
        self,
        function: str,
        arrays: tuple[Array, ...],
        options: tuple[Any, ...],
        f_ext: Mapping[str, Any] | None,
        out: Array,
        threads: int | None,
    ) -> Any:
        """Evaluate a robot function.

        `options` is a flat tuple (name, value, name, value, ...), and is part of the cache key of
        the compiled program.
        """
        key = (function, options)
        mechanism = self.mechanism
        ready = mechanism.found(key) if f_ext is None else mechanism.asked(key, f_ext)
        if ready is None:
            caller: Any = mechanism.asked(key)
            if getattr(caller, "plain", False) and mechanism.t is None:
                self._install(function, caller)
            ready = mechanism.keep(key, caller)
        if out is None and threads is None:
            answer = ready(*arrays)
        else:
            answer = ready(*arrays, out=out, threads=threads)
        if _HEARD.call is not None:
            _HEARD.call = (self, function, arrays, ready, f_ext, answer)
        elif function not in self.__dict__:
            self._install(function, ready)
        return answer

    def _install(self, function: str, ready: Any) -> None:
        """Replace a Python method of this robot with a fast entry point (a C callable).

        The method is replaced during its first call if that call has no options or if the robot has
        closed loops, and otherwise during its second call. Every new set of options runs the Python
        method once; later calls with these options do not.
        """
        plain = getattr(ready, "plain", False)
        closed = getattr(ready, "guarded", None) is not None
        if not (plain or closed) and function not in self.mechanism.called:
            self.mechanism.called.add(function)
            return
        method = getattr(type(self), function, None)
        # False for user-defined methods
        own = method is not None and method.__module__.startswith("chasles.")
        if function in self.__dict__ or not own or not (plain or closed or learnable(ready)):
            return
        method = getattr(self, function)
        facts = {"holder": self, "fallback": partial(self._by_python, function, method)}
        if plain:
            entry = ready.entry(method=method, **facts)
        else:
            entry = entry_of(method, function, **facts)
        if entry is not facts["fallback"]:  # false on systems without fast entry points
            self.__dict__[function] = entry

    def _by_python(self, function: str, method: Any, /, *arguments: Any, **named: Any) -> Any:
        """Call a Python method, and register the call with the fast entry point if possible.

        The entry point then handles later calls with the same keywords and argument types.
        Registration is possible if the method only passes its arguments to a compiled
        function and returns the result.
        """
        _HEARD.call = ()
        try:
            answer = method(*arguments, **named)
            heard = _HEARD.call
        finally:
            _HEARD.call = None
        if heard and heard[0] is self and heard[1] == function and heard[-1] is answer:
            _, _, arrays, ready, f_ext, _ = heard
            if arguments and type(arguments[-1]) is str:  # the last argument is the frame
                *given, frame = arguments
                arguments, named = tuple(given), {"frame": frame, **named}
            if len(arrays) == len(arguments) and all(map(operator.is_, arrays, arguments)):
                owner = getattr(self.__dict__.get(function), "__self__", None)
                learn(owner, arguments, named, lambda: target(ready, arrays, f_ext))
        return answer


class _Heard(threading.local):
    """The last robot function called in this thread, recorded while `Identity._by_python` runs."""

    call: tuple[Any, ...] | None = None


_HEARD = _Heard()


Kind = TypeVar("Kind", bound=Identity)


def rebuilt(kind: type[Kind], source: Description, mimic: bool, t: np.ndarray | None) -> Kind:
    """Create a robot from a description, at a fixed time t unless t is None."""
    mechanism = mechanisms.of(build(source, mimic=mimic))
    return of_mechanism(kind, mechanism if t is None else mechanism.at(t))


def of_mechanism(kind: type[Kind], mechanism: Mechanism) -> Kind:
    """Create a robot of a given class from a mechanism."""
    made = object.__new__(kind)
    made._begin(mechanism)
    return made
