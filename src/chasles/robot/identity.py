"""The identity of a robot: names, numbers and limits, and calls of its mechanism."""

import operator
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self, TypeVar

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
from chasles.robot.machine import Actuators, Keyframe, keyframes

Array = Any
"""An array of NumPy, PyTorch, JAX or CuPy, or anything NumPy can make one of. Results are of the
same library; annotations name NumPy's."""


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of all joints, infinite where a joint has none.

    lower, upper: positions (nq,), in rad or m. velocity, effort: the largest absolute values
    (nv,), in rad/s or m/s, and in N m or N.
    """

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


class Identity(Named):
    """A model, and the mechanism that answers for it."""

    def __init__(self, source: Description, *, mimic: bool = True, strict: bool = False) -> None:
        self._begin(mechanisms.of(build(source, mimic=mimic, strict=strict)))

    def _begin(self, mechanism: Mechanism) -> None:
        """Make the robot of a mechanism, whatever arguments a subclass is made with."""
        self.mechanism: Mechanism = mechanism
        """The mechanism behind the functions: a tree, closed loops, or one that depends on time."""
        self.model = mechanism.model
        self.mimic: bool = mechanism.model.mimic
        """True if joints follow those that they mimic, without coordinates of their own."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return rebuilt, (type(self), self.model.source, self.mimic, self.mechanism.t)

    def __repr__(self) -> str:
        loops = f", loops {len(self.loops)}" if self.loops else ""
        loops += f", couplings {len(self.couplings)}" if self.couplings else ""
        name = shown(repr(self.name))
        return f"<Robot {name}: {len(self.joints)} joints, nq {self.nq}, nv {self.nv}{loops}>"

    @property
    def bodies(self) -> tuple[str, ...]:
        """All links, in file order."""
        return tuple(link.name for link in self.model.source.links)

    @property
    def moving_joints(self) -> tuple[str, ...]:
        """All moving joints in file order, mimic followers included: the rows of reactions."""
        return tuple(self.model.bodies[i].data.name for i in self.model.in_file_order)

    @property
    def loops(self) -> tuple[str, ...]:
        """The joints that close loops; they have no coordinates."""
        return tuple(loop.name for loop in self.model.loops)

    @property
    def couplings(self) -> tuple[str, ...]:
        """The equations between coordinates beside those of the loops: gears and the like."""
        return tuple(coupling.name for coupling in self.model.couplings)

    @property
    def independent(self) -> tuple[str, ...]:
        """The freedoms that determine all others through the loops: what y stands for.

        Joints, with [k] where a joint has several freedoms. Chosen once, by rank at positions that
        close the loops, early joints first; `with_independent` makes another choice. All freedoms
        of the tree, in order, if there are no loops.
        """
        return self.mechanism.independent

    @property
    def independent_positions(self) -> tuple[str, ...]:
        """The freedoms that `assemble` takes: `independent`, and more where constraints roll.

        An equation of velocities alone (`chasles.model.rolling`) takes away no position.
        """
        loops = self.mechanism.loops
        return tuple(loops.freedoms[k] for k in loops.positions.independent)

    @property
    def mass(self) -> float:
        """The mass of all links, in kg, those fixed to the world included."""
        return float(sum(link.inertia.m for link in self.model.source.links))

    @property
    def frames(self) -> tuple[str, ...]:
        """Everything that `frame=` accepts: links and named frames."""
        return tuple(self.model.frames)

    @property
    def gravity(self) -> np.ndarray:
        """The acceleration of gravity along the world's axes, in m/s2."""
        return np.array(list(self.model.gravity_vector))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on what loading assumed, repaired or found suspicious.

        Those of a robot with loops include equations of its loops that are dropped because others
        imply them up to the digits of the file.
        """
        return (*self.model.notes, *self.mechanism.loops.notes)

    @cached_property
    def limits(self) -> Limits:
        """The limits of all joints.

        Those of a universal or yaw-pitch-roll joint hold for each of its angles. Joints with
        quaternions, and those with both angles and lengths, have none.
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
        """The actuators' names, in file order, which is that of controls; with their ranges."""
        return Actuators(self.model.source.actuators)

    def activations(self, act: Array = None) -> Array:
        """Return activations as they are given, or zero for each that there is: (na,)."""
        return np.zeros(len(self.actuators.active)) if act is None else act

    @cached_property
    def keyframes(self) -> Mapping[str, Keyframe]:
        """States that the file has under a name: q, qd, ctrl and act of each."""
        return keyframes(self.model)

    def joint(self, name: str) -> JointData:
        """The data of a joint in the file: type, axis, limits, damping, friction, mimic."""
        a_name("a joint", name)
        for data in self.model.source.joints:
            if data.name == name:
                return data
        remedy = f"it has {', '.join(self.joints)}"
        raise ModelError("E-ROBOT-005", f"no joint {name!r}", remedy, part=f"robot {self.name!r}")

    def parameter(self, name: str) -> np.ndarray:
        """A number of the mechanism: "<link>.mass", ".center", ".inertia", "<joint>.placement",
        "gravity"; what `chasles.compile(..., parameters=...)` takes as inputs.
        """
        return np.array(nominal(self.model.source, name)).reshape(shape(self.model.source, name))

    def loop_clusters(self) -> tuple[Cluster, ...]:
        """Loops and couplings that share joints, with these joints: `(loops, joints)` for each.

        What happens in one cluster does not depend on the coordinates of another (Featherstone
        2008, section 8.9); joints that are in none are not constrained.
        """
        return clusters(self.model)

    def at_time(self, t: Array) -> Self:
        """The robot at a time (...), in s, which broadcasts with the other arrays of a function.

        Only of a robot that depends on time. What is decided once, as which freedoms of loops are
        independent, is decided at t = 0.
        """
        held = self.at(t)
        if held is self:
            problem = f"robot {self.name!r} does not depend on time"
            raise ModelError("E-ROBOT-008", problem, "use it directly", part="at_time")
        return held

    def at(self, t: Array) -> Self:
        """The robot at a time (...), in s; itself if it does not depend on time."""
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
        """Compute a function; options: names and values in turn, which are its key from then on."""
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
        """Make the method a fast entry, from its first plain call on or the second of any other.

        Also from the first call of closed loops on, so that a method kept after it is fast. The
        entry learns what options lead to from calls that it does not know.
        """
        plain = getattr(ready, "plain", False)
        closed = getattr(ready, "guarded", None) is not None
        if not (plain or closed) and function not in self.mechanism.called:
            self.mechanism.called.add(function)
            return
        method = getattr(type(self), function, None)
        own = method is not None and method.__module__.startswith("chasles.")  # not a subclass's
        if function in self.__dict__ or not own or not (plain or closed or learnable(ready)):
            return
        method = getattr(self, function)
        facts = {"holder": self, "fallback": partial(self._by_python, function, method)}
        if plain:
            entry = ready.entry(method=method, **facts)
        else:
            entry = entry_of(method, function, **facts)
        if entry is not facts["fallback"]:  # there are entries on this Python
            self.__dict__[function] = entry

    def _by_python(self, function: str, method: Any, /, *arguments: Any, **named: Any) -> Any:
        """Call a method, and let its fast entry learn where the call led.

        That can be learned if the method handed on its arguments and handed back the answer.
        """
        _HEARD.call = ()
        try:
            answer = method(*arguments, **named)
            heard = _HEARD.call
        finally:
            _HEARD.call = None
        if heard and heard[0] is self and heard[1] == function and heard[-1] is answer:
            _, _, arrays, ready, f_ext, _ = heard
            if arguments and type(arguments[-1]) is str:  # as the entry reads it
                *given, frame = arguments
                arguments, named = tuple(given), {"frame": frame, **named}
            if len(arrays) == len(arguments) and all(map(operator.is_, arrays, arguments)):
                owner = getattr(self.__dict__.get(function), "__self__", None)
                learn(owner, arguments, named, lambda: target(ready, arrays, f_ext))
        return answer


class _Heard(threading.local):
    """What the last call led to, in this thread, while somebody listens."""

    call: tuple[Any, ...] | None = None


_HEARD = _Heard()


Kind = TypeVar("Kind", bound=Identity)


def rebuilt(kind: type[Kind], source: Description, mimic: bool, t: np.ndarray | None) -> Kind:
    """The robot of a description, at a time if it is given one and depends on it."""
    mechanism = mechanisms.of(build(source, mimic=mimic))
    return of_mechanism(kind, mechanism if t is None else mechanism.at(t))


def of_mechanism(kind: type[Kind], mechanism: Mechanism) -> Kind:
    """The one place that makes a robot of a mechanism."""
    made = object.__new__(kind)
    made._begin(mechanism)
    return made
