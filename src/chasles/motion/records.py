"""Events and records of a simulation: states, contacts, and data to resume from."""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from chasles.errors import InputError
from chasles.formats import motion
from chasles.functions.doors import check_robot, numbers
from chasles.motion.contract import Machine, read_only


@dataclass(frozen=True)
class Event:
    """Event of a simulation: a zero crossing of a function of time and state.

    Sign changes are detected between the ends of each step, so dt must be small enough that the
    function does not change its sign twice within one step. A value of zero at the start of a step
    is not a sign change.

    Attributes
    ----------
    function : callable
        Function (t, q, qd) -> float whose zero crossings are detected, for t (s), q (nq,) and
        qd (nv,). The arrays passed to the function are read-only.
    direction : {0, 1, -1}
        Detect all crossings (0), only upward (1), or only downward crossings (-1).
    then : callable, optional
        Function (t, q, qd) -> (q, qd) that returns the state from which the motion continues, for
        example after an impact. The function may change and return its arguments, which are copies.
    terminal : bool, optional
        True if the motion ends at the event. Default: True if `then` is not given.
    name : str
        Name of the event in `Trajectory.events` and in messages.
    """

    function: Callable[[float, np.ndarray, np.ndarray], float]
    direction: int = 0
    then: Callable[[float, np.ndarray, np.ndarray], tuple[Any, Any]] | None = None
    terminal: bool | None = None
    name: str = "event"

    def __post_init__(self) -> None:
        if self.direction not in (-1, 0, 1):
            problem = f"`direction` must be -1, 0 or 1, not {self.direction!r}"
            raise InputError("E-MOTION-040", problem, part=f"event {self.name!r}")

    @property
    def stops(self) -> bool:
        """Return True if the event ends the motion."""
        return self.then is None if self.terminal is None else self.terminal

    @property
    def interrupts(self) -> bool:
        """Return True if the step ends at the event."""
        return self.stops or self.then is not None

    def value(self, t: float, q: np.ndarray, qd: np.ndarray) -> float:
        """Evaluate the function and check its value.

        Parameters
        ----------
        t : float
            Time (s).
        q : ndarray, shape (nq,)
            Joint positions (rad or m).
        qd : ndarray, shape (nv,)
            Joint velocities (rad/s or m/s).

        Returns
        -------
        float
            Value of the function.

        Raises
        ------
        InputError
            If the function does not return one finite number.

        Examples
        --------
        >>> import chasles
        >>> import numpy as np
        >>> chasles.Event(lambda t, q, qd: t - 1.0).value(0.25, np.zeros(1), np.zeros(1))
        -0.75
        """
        found = np.asarray(self.function(t, *read_only(q, qd)), dtype=float)
        if found.size != 1 or not math.isfinite(found.item()):
            problem = f"event {self.name!r} returned {found!r:.60} at t = {t:.6g} s"
            raise InputError("E-MOTION-041", problem, "return one finite number", part="simulate")
        return found.item()

    def after(self, t: float, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Call `then` and check the state that it returns.

        Parameters
        ----------
        t : float
            Time (s).
        q : ndarray, shape (nq,)
            Joint positions (rad or m).
        qd : ndarray, shape (nv,)
            Joint velocities (rad/s or m/s).

        Returns
        -------
        tuple of ndarray
            The new q (nq,) and qd (nv,).

        Raises
        ------
        InputError
            If `then` does not return a finite state (q, qd) with the shapes of its arguments.

        Examples
        --------
        >>> import chasles
        >>> import numpy as np
        >>> bounce = chasles.Event(lambda t, q, qd: q[0], then=lambda t, q, qd: (q, -qd))
        >>> bounce.after(0.0, np.zeros(1), np.ones(1))
        (array([0.]), array([-1.]))
        """
        assert self.then is not None
        try:
            state = [np.array(part, dtype=float) for part in self.then(t, q.copy(), qd.copy())]
        except (TypeError, ValueError, OverflowError):
            state = []
        fits = [part.shape for part in state] == [q.shape, qd.shape]
        if not fits or not all(np.isfinite(part).all() for part in state):
            problem = f"event {self.name!r} did not return a state (q, qd) at t = {t:.6g} s"
            remedy = f"return finite arrays of shapes {q.shape} and {qd.shape}"
            raise InputError("E-MOTION-042", problem, remedy, part="simulate")
        return state[0], state[1]


class Occurrence(NamedTuple):
    """Occurrence of an event: its name, its time, and the state before `Event.then` is called."""

    name: str
    t: float
    q: np.ndarray
    qd: np.ndarray


class Touching(NamedTuple):
    """Contact forces, gaps and states at the n times of a trajectory.

    Attributes
    ----------
    forces : array, shape (..., n, points, 3)
        Forces on the body at each contact point, along the world axes (N).
    gaps : array, shape (..., n, points)
        Distances at the contact points (m). In "time-stepping", a point that is not in use has the
        gap 1000.
    states : array, shape (..., n, states)
        States of soft surfaces and friction, ordered by contact point.
    """

    forces: np.ndarray
    gaps: np.ndarray
    states: np.ndarray

    def __repr__(self) -> str:
        shapes = zip(self._fields, (tuple(part.shape) for part in self), strict=True)
        parts = ", ".join(f"{name} {shape}" for name, shape in shapes)
        return f"<Touching: contact forces and gaps; {parts}>"


class End(NamedTuple):
    """End of a partial motion, with all data needed to continue it with `simulate(resume=end)`.

    Attributes
    ----------
    t : float
        Time (s).
    q : array, shape (..., nq + m)
        Joint positions (rad or m), followed by m states of soft contacts and activations.
    qd : array, shape (..., nv)
        Joint velocities (rad/s or m/s).
    over : bool
        True if the duration has passed or an event ended the motion.
    memory : mapping from str to array
        Other data that the motion keeps between steps, such as the number of steps, the next step
        size, and the independent coordinates of closed loops.
    """

    t: float
    q: np.ndarray
    qd: np.ndarray
    over: bool
    memory: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Trajectory:
    """Result of a simulation: the states at n times, and records of contacts, events and sensors.

    The leading shape (...) is the shape of the batch, empty for a single motion. The attributes
    from `iterations` to `overflow` are None unless the integrator is "time-stepping".

    Attributes
    ----------
    t : array, shape (n,)
        Times of the recorded states (s).
    q : array, shape (..., n, nq)
        Joint positions (rad or m).
    qd : array, shape (..., n, nv)
        Joint velocities (rad/s or m/s).
    rechosen : tuple of float
        Times (s) at which the independent coordinates of closed loops changed for at least one
        member of the batch.
    events : tuple of Occurrence
        Events that occurred, in order.
    touching : Touching or None
        Contact forces, gaps and states if `contacts` were given.
    contacts : tuple of Pair
        Contact pairs of the motion, in the order of `touching`.
    end : End or None
        State from which the motion can be resumed.
    compiled : bool
        True if all steps ran in machine code.
    why : str
        Reason why some steps ran in Python, if any did.
    unstable : array of int, shape (...), or None
        With soft contacts, the first unstable step, or -1 if there is none. In unstable motion, the
        velocities of contact points reverse from step to step, because the step size is too large
        for the stiffness or damping of the ground.
    sensors : mapping from str to array, shape (..., n, size)
        Values of the requested sensors, by name.
    act : array, shape (..., n, na), or None
        Activations of the actuators if controls were given.
    iterations : array, shape (...)
        Mean number of iterations per step.
    unsolved : array, shape (...)
        Number of steps whose friction does not agree with the normal impulses, or that did not
        converge.
    held : array, shape (...)
        Number of unsolved steps that converged once friction was bounded by fixed normal impulses.
    residual : array, shape (...)
        Largest residual of the momentum balance, relative to the momentum.
    work : array, shape (...)
        Work of all impulses (J), computed with the velocities at the end of each step.
    excess : array, shape (...)
        Largest amount (J) by which the work in a step exceeds the energy that may be released by
        overlaps and restitution.
    overflow : array, shape (...)
        Number of steps in which some overlapping points did not act, because there were more of
        them than shared contact slots (see `contact.Pair`).
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    rechosen: tuple[float, ...] = ()
    events: tuple[Occurrence, ...] = ()
    touching: Touching | None = None
    end: End | None = None
    compiled: bool = False
    why: str = ""
    unstable: np.ndarray | None = None
    sensors: Mapping[str, np.ndarray] = field(default_factory=dict)
    iterations: np.ndarray | None = None
    unsolved: np.ndarray | None = None
    residual: np.ndarray | None = None
    work: np.ndarray | None = None
    excess: np.ndarray | None = None
    overflow: np.ndarray | None = None
    held: np.ndarray | None = None
    act: np.ndarray | None = None
    contacts: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        span = f"{len(self.t)} states"
        if len(self.t):
            span += f" from {self.t[0]:.6g} to {self.t[-1]:.6g} s"
        parts = [span, f"q {self.q.shape}", f"qd {self.qd.shape}"]
        parts += [f"sensors {', '.join(self.sensors)}"] * bool(self.sensors)
        parts += [f"{len(self.events)} events"] * bool(self.events)
        parts.append("compiled" if self.compiled else "not compiled")
        return f"<Trajectory: {'; '.join(parts)}>"

    def save(
        self, path: str | os.PathLike[str], robot: Machine, *, overwrite: bool = False
    ) -> None:
        """Write times, positions and velocities to a motion file.

        `robot.show(motion=)`, `chasles view`, `chasles motion --differentiate` and
        `chasles.trajectory.load` read the file.

        Parameters
        ----------
        path : str or path
            File to write: a table with one column per coordinate (.csv, .parquet), or .npz.
        robot : Robot
            The robot that was simulated, whose joints name the columns.
        overwrite : bool, optional
            Replace an existing file.

        Raises
        ------
        InputError
            If the trajectory is a batch of motions, or if an array does not have the size of the
            robot.
        ArgumentError
            If `robot` is not a Robot.
        ModelError
            If the ending of the path is not that of a motion file, or if pyarrow is not installed
            for a .parquet file.
        ExistingFileError
            If the file exists and `overwrite` is False.
        FileError
            If the file cannot be written.

        Notes
        -----
        If an event changes the state, only the state after the event is written.

        Examples
        --------
        >>> import chasles, tempfile, pathlib
        >>> robot = chasles.robots.planar(2)
        >>> run = robot.simulate([0.1, 0.2], [0.0, 0.0], duration=0.1)
        >>> run.save(pathlib.Path(tempfile.mkdtemp()) / "run.csv", robot)
        """
        check_robot("save", robot)
        model, t = robot.model, np.asarray(self.t, dtype=float)
        q, qd = numbers("q", self.q, model.nq), numbers("qd", self.qd, model.nv)
        if q.ndim != 2:
            problem = f"a file contains a single motion, but q has shape {q.shape}"
            remedy = "save one motion: dataclasses.replace(run, q=run.q[0], qd=run.qd[0])"
            raise InputError("E-MOTION-212", problem, remedy, part="save")
        last = np.diff(t, append=np.inf) > 0.0
        motion.write(path, model, t[last], (q[last], qd[last]), overwrite=overwrite)
