"""Base class of `Robot`: names, sizes, limits, and the evaluation of functions."""

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
from chasles.functions.names import FOREIGN
from chasles.mechanisms import Cluster, Mechanism, Named, clusters
from chasles.model import Description, JointData, ModelError, build
from chasles.model.given import a_name
from chasles.model.parameters import nominal, shape
from chasles.model.tool import tool
from chasles.robot.html import as_html
from chasles.robot.machine import Actuators, Keyframe, Limits, keyframes

Array = Any
"""An array of NumPy, PyTorch, JAX or CuPy, or any array_like. Results are arrays of the same
library; annotations mention only NumPy.
"""


class Identity(Named):
    """A model, and the mechanism that evaluates its functions."""

    def __init__(self, source: Description, *, mimic: bool = True, strict: bool = False) -> None:
        self._begin(mechanisms.of(build(source, mimic=mimic, strict=strict)))

    def _begin(self, mechanism: Mechanism) -> None:
        """Initialize the robot from a mechanism. Subclasses may have a different `__init__`."""
        self.mechanism: Mechanism = mechanism
        """Mechanism that evaluates the functions."""
        self.model = mechanism.model
        self.mimic: bool = mechanism.model.mimic
        """True if mimic joints follow their leader; False if they have independent coordinates."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return rebuilt, (type(self), self.model.source, self.mimic, self.mechanism.t)

    if not TYPE_CHECKING:  # type checkers report unknown names themselves

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError; for a name in another library, suggest the name in chasles."""
            kind = type(self).__name__
            problem = f"{kind!r} object has no attribute {name!r}"
            if not name.startswith("_") and hasattr(type(self), ours := FOREIGN.get(name, "_")):
                problem += f"; it is called {ours!r} here"
            raise AttributeError(problem, name=name, obj=self)

    def __repr__(self) -> str:
        loops = f", loops {len(self.loops)}" if self.loops else ""
        loops += f", couplings {len(self.couplings)}" if self.couplings else ""
        name = shown(repr(self.name))
        return f"<Robot {name}: {len(self.joints)} joints, nq {self.nq}, nv {self.nv}{loops}>"

    def _repr_html_(self) -> str:
        return as_html(self.model, repr(self), self.tool)

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
        """Names of the couplings: equations between coordinates, such as gears."""
        return tuple(coupling.name for coupling in self.model.couplings)

    @property
    def independent(self) -> tuple[str, ...]:
        """Independent coordinates, which determine all others through the loops.

        They are named by joint, with [k] for a joint with several degrees of freedom. They are
        chosen once, from the rank of the loop matrix at closed configurations; joints that come
        first are preferred. Use `with_independent` to choose other coordinates. Without loops, all
        coordinates of the tree are independent.
        """
        return self.mechanism.independent

    @property
    def independent_positions(self) -> tuple[str, ...]:
        """Names of the coordinates that `assemble` takes.

        They are the `independent` coordinates. Rolling constraints (`chasles.model.rolling`) do not
        constrain positions, so they add independent positions.
        """
        loops = self.mechanism.loops
        return tuple(loops.freedoms[k] for k in loops.positions.independent)

    @property
    def mass(self) -> float:
        """Mass of all links (kg), including those fixed to the world."""
        return float(sum(link.inertia.m for link in self.model.source.links))

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of all links and named frames, which `frame=` accepts."""
        return tuple(self.model.frames)

    @property
    def tool(self) -> str:
        """Name of the default frame of functions with a `frame` argument.

        It is a frame named tool, tcp or end_effector (or similar, with any prefix), otherwise the
        platform of a parallel robot, otherwise the last frame at the end of the longest chain.
        Fingers of a gripper are ignored.
        """
        return tool(self.model)

    @property
    def gravity(self) -> np.ndarray:
        """Acceleration of gravity along the world axes (m/s2)."""
        return np.array(list(self.model.gravity_vector))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes from loading the file: assumptions, repairs and suspicious values.

        For a robot with loops, the notes also list loop equations that are dropped because other
        equations imply them, within the precision of the file.
        """
        return (*self.model.notes, *self.mechanism.loops.notes)

    @cached_property
    def limits(self) -> Limits:
        """Limits of all joints.

        The limits of a universal or yaw-pitch-roll joint apply to each of its angles. Joints with
        quaternions, and joints with both angles and lengths, have no limits.
        """
        model = self.model
        q, v = np.full((2, model.nq), np.inf), np.full((2, model.nv), np.inf)
        q[0] = -np.inf
        for i in model.movers:
            given, joint = model.bodies[i].data.limits, model.bodies[i].joint
            if set(joint.units) in ({"rad"}, {"m"}) and joint.nq == joint.nv:
                q[:, model.position_slices[i]] = [[given.lower], [given.upper]]
                v[:, model.velocity_slices[i]] = [[given.velocity], [given.effort]]
        return Limits(*q, *v)

    @cached_property
    def actuators(self) -> Actuators:
        """Names and ranges of the actuators, in the order of the controls `ctrl`."""
        return Actuators(self.model.source.actuators)

    def activations(self, act: Array = None) -> Array:
        """Return the given activations, or zeros by default.

        Parameters
        ----------
        act : array_like, shape (..., na), optional
            Activations.

        Returns
        -------
        ndarray, shape (..., na)
            The given activations, or zeros of shape (na,).

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.planar(2).activations(None).shape
        (0,)
        """
        return np.zeros(len(self.actuators.active)) if act is None else act

    @cached_property
    def keyframes(self) -> Mapping[str, Keyframe]:
        """Named states of the file, each with q, qd, ctrl and act."""
        return keyframes(self.model)

    def joint(self, name: str) -> JointData:
        """Return the data of a joint in the file.

        Parameters
        ----------
        name : str
            Name of the joint.

        Returns
        -------
        JointData
            Type, axis, limits, damping, friction, mimic and so on.

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
        remedy = f"use one of {', '.join(self.joints)}"
        raise ModelError("E-ROBOT-005", f"no joint {name!r}", remedy, part=f"robot {self.name!r}")

    def parameter(self, name: str) -> np.ndarray:
        """Return the value of a model parameter.

        Parameters
        ----------
        name : str
            "<link>.mass" (kg), "<link>.center" (m), "<link>.inertia" (kg m2), "<joint>.placement"
            or "gravity" (m/s2): the names that `chasles.compile(..., parameters=...)` accepts.

        Returns
        -------
        ndarray
            The value.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.planar(2).parameter("gravity")
        array([ 0.  ,  0.  , -9.81])
        """
        return np.array(nominal(self.model.source, name)).reshape(shape(self.model.source, name))

    def loop_clusters(self) -> tuple[Cluster, ...]:
        """Return groups of loops and couplings that share joints.

        Returns
        -------
        tuple of (loops, joints)
            One pair for each cluster. Motions of one cluster do not depend on the coordinates of
            another (Featherstone 2008, section 8.9); joints outside clusters are unconstrained.

        Examples
        --------
        >>> import chasles
        >>> len(chasles.robots.four_bar().loop_clusters())
        1
        """
        return clusters(self.model)

    def at_time(self, t: Array) -> Self:
        """Return a time-dependent robot at a given time.

        Parameters
        ----------
        t : array_like, shape (...)
            Time (s), which broadcasts with the other arrays of a function.

        Returns
        -------
        Robot
            Robot at this time. The independent coordinates and similar choices are made at t = 0
            and do not depend on `t`.

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
            raise ModelError("E-ROBOT-008", problem, "omit at_time", part="at_time")
        return held

    def at(self, t: Array) -> Self:
        """Return the robot at a time, or the robot itself if it does not depend on time.

        Parameters
        ----------
        t : array_like, shape (...)
            Time (s).

        Returns
        -------
        Robot
            Robot at this time.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.planar(2)
        >>> robot.at(1.0) is robot
        True
        """
        mechanism = self.mechanism.at(t)
        return self if mechanism is self.mechanism else of_mechanism(type(self), mechanism)

    # Calls --------------------------------------------------------------------------------------

    def _call(
        self,
        function: str,
        arrays: tuple[Array, ...],
        options: tuple[Any, ...],
        f_ext: Mapping[str, Any] | None,
        out: Array,
        threads: int | None,
    ) -> Any:
        """Evaluate a function.

        `options` contains the name and value of each option in turn. They are part of the key
        under which the compiled program is cached.
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
        """Replace the method with its fast entry.

        This happens at the first call if it has no options or if the robot has closed loops, and
        otherwise at the second call. A call with new options falls back to the method, and the
        entry is then extended.
        """
        plain = getattr(ready, "plain", False)
        closed = getattr(ready, "guarded", None) is not None
        if not (plain or closed) and function not in self.mechanism.called:
            self.mechanism.called.add(function)
            return
        method = getattr(type(self), function, None)
        own = method is not None and method.__module__.startswith("chasles.")  # not overridden
        if function in self.__dict__ or not own or not (plain or closed or learnable(ready)):
            return
        method = getattr(self, function)
        facts = {"holder": self, "fallback": partial(self._by_python, function, method)}
        if plain:
            entry = ready.entry(method=method, **facts)
        else:
            entry = entry_of(method, function, **facts)
        if entry is not facts["fallback"]:  # this system supports fast entries
            self.__dict__[function] = entry

    def _by_python(self, function: str, method: Any, /, *arguments: Any, **named: Any) -> Any:
        """Call a method, and register the function that it called in its fast entry.

        The function is registered only if the method passed its arguments on unchanged and returned
        the result unchanged.
        """
        _HEARD.call = ()
        try:
            answer = method(*arguments, **named)
            heard = _HEARD.call
        finally:
            _HEARD.call = None
        if heard and heard[0] is self and heard[1] == function and heard[-1] is answer:
            _, _, arrays, ready, f_ext, _ = heard
            if arguments and type(arguments[-1]) is str:  # a frame name; the entry also accepts it
                *given, frame = arguments
                arguments, named = tuple(given), {"frame": frame, **named}
            if len(arrays) == len(arguments) and all(map(operator.is_, arrays, arguments)):
                owner = getattr(self.__dict__.get(function), "__self__", None)
                learn(owner, arguments, named, lambda: target(ready, arrays, f_ext))
        return answer


class _Heard(threading.local):
    """Last call in this thread, recorded while `_by_python` runs."""

    call: tuple[Any, ...] | None = None


_HEARD = _Heard()


Kind = TypeVar("Kind", bound=Identity)


def rebuilt(kind: type[Kind], source: Description, mimic: bool, t: np.ndarray | None) -> Kind:
    """Return the robot for a description, at time t unless t is None."""
    mechanism = mechanisms.of(build(source, mimic=mimic))
    return of_mechanism(kind, mechanism if t is None else mechanism.at(t))


def of_mechanism(kind: type[Kind], mechanism: Mechanism) -> Kind:
    """Return a robot of the given class, made from a mechanism."""
    made = object.__new__(kind)
    made._begin(mechanism)
    return made
