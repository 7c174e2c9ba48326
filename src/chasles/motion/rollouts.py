"""Compiled motions of a given number of steps, `Robot.rollout`, and their gradients."""

from collections.abc import Sequence
from typing import Any, Required, TypedDict, Unpack

from chasles.errors import ArgumentError
from chasles.motion.adjoint import RolloutGradient
from chasles.motion.contact.pairs import Pair
from chasles.motion.contract import Array, Machine
from chasles.motion.drivers.compiled import Course, Rollout, checked_steps, prepared
from chasles.motion.keywords import renamed, shown
from chasles.motion.records import Trajectory


class Steps(TypedDict, total=False):
    """Options of `rollout` and `rollout_pullback`."""

    dt: Required[float]
    steps: Required[int]
    every: int
    control: Any
    parameters: Array
    integrator: str
    start: float
    dissipation: bool
    contacts: Sequence[Pair] | None
    contact_states: Array
    threads: int | None


def _course(
    robot: Machine,
    q: Array,
    qd: Array,
    tau: Any,
    *,
    dt: float,
    steps: int,
    every: int = 1,
    control: Any = None,
    parameters: Array = None,
    integrator: str = "semi-implicit",
    start: float = 0.0,
    dissipation: bool = False,
    contacts: Sequence[Pair] | None = None,
    contact_states: Array = None,
    threads: int | None = None,
) -> tuple[Rollout, Course]:
    """The compiled step that options ask for, and the course of the motion."""
    if tau is not None and control is not None:
        raise ArgumentError("E-MOTION-103", "give tau or control, not both", part="rollout")
    tau = tau if control is None else control
    dt, steps, every, threads = checked_steps(dt, steps, every, start, threads)
    made = prepared(robot, integrator, tau, dissipation, contacts, dt, parameters)
    forces = None if callable(tau) else tau
    given = (q, qd, forces, contact_states, parameters)
    return made, Course(*given, dt, steps, every, start, threads)


@renamed(method="integrator")
@shown(Steps, _course.__kwdefaults__)
def rollout(
    robot: Machine, q: Array, qd: Array, tau: Any = None, **options: Unpack[Steps]
) -> Trajectory:
    """The motion from q (..., nq) and qd (..., nv) in so many steps of dt seconds, all of them
    in machine code.

    tau: joint forces: none, constant (nv,), one row for each step (..., steps, nv), or a
    controller that is traced into the step: a function tau(t, q, qd) of numbers that returns
    nv of them (with the functions of `chasles.expr` where it needs more than arithmetic), or
    one of `chasles.rollouts.PDControl`, `GravityCompensation`, `ComputedTorque`. every: keep
    one state of so many, and the last. parameters: (m,) or (..., m), of a controller
    tau(t, q, qd, p), which is traced once for all their values. integrator: "semi-implicit" (Euler;
    first order), "euler" or "rk4" (fourth order), all along the configuration space. start: the
    time of the first step, in s. dissipation as in `forward_dynamics`. Robots with loops, or
    that depend on time: `chasles.simulate`. CuPy's arrays are computed on their GPU, in one
    launch, in float32 if all are; nothing is checked to be finite there.

    contacts: pairs of shapes with a soft law, `contact.Pair(body, surface, SoftContact(...))`;
    their forces are part of the step, which is compiled for each dt then, and
    `Trajectory.touching` has forces, gaps and states at the kept times. contact_states
    (..., states): those of the surfaces and of friction at the start, at rest by default.
    """
    made, course = _course(robot, q, qd, tau, **options)
    return made(course)


@renamed(method="integrator")
@shown(Steps, _course.__kwdefaults__)
def rollout_pullback(
    robot: Machine,
    q: Array,
    qd: Array,
    tau: Any = None,
    *,
    covectors: Sequence[Array],
    **options: Unpack[Steps],
) -> RolloutGradient:
    """The gradient of a number that depends on a motion: covectors of its states pulled back to
    the start, the forces and the controller's parameters, in machine code.

    covectors: the derivatives of that number by the q and by the qd that `rollout` keeps with
    the same arguments, each (..., n, nv), or None for zero. Derivatives by q, these and the
    one by the start, are along `integrate`, as in `derivatives`: nv numbers for each q. There
    is one gradient for each member of a batch, also by what the batch shares. Memory grows with
    the square root of `steps`, beside what is given and returned (the adjoint method, with
    checkpoints: Griewank, Walther 2008, chapter 12). Arrays of NumPy only.
    """
    made, course = _course(robot, q, qd, tau, **options)
    return made.pullback(course, covectors)
