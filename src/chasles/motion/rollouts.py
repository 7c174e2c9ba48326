"""Rollouts: compiled simulations with a fixed step size, and their gradients."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict, Unpack

from chasles.errors import ArgumentError
from chasles.functions.doors import library_of
from chasles.model.given import some_numbers
from chasles.motion import tensors
from chasles.motion.contact import watch as watching
from chasles.motion.contact.pairs import Pair
from chasles.motion.contract import Array, Machine
from chasles.motion.controllers import with_samples
from chasles.motion.controls import Controls
from chasles.motion.drivers import stepping
from chasles.motion.drivers.compiled import Course, Rollout, checked_steps, prepared
from chasles.motion.drivers.stepping import TIME_STEPPING, Stepped
from chasles.motion.keywords import check_keywords, renamed, shown
from chasles.motion.numbers import Numbers
from chasles.motion.options import Plan
from chasles.motion.parameters import check_names, given_values
from chasles.motion.records import Trajectory
from chasles.motion.references import alike
from chasles.motion.simulation import check_damping, with_file
from chasles.motion.steps.traced import RolloutGradient

StepIntegrators = Literal["semi-implicit", "euler", "heun2", "heun3", "rk4", "time-stepping"]
"""Type of the option `integrator`: "time-stepping", or a name in `STEPS`."""


class Steps(TypedDict, total=False):
    """Options of `rollout` and `rollout_pullback`."""

    dt: Required[float]
    steps: Required[int]
    every: int
    control: Any
    parameters: Array
    model_parameters: Mapping[str, Array] | None
    ctrl: Any
    act: Array
    integrator: StepIntegrators
    start: float
    dissipation: bool | None
    contacts: Sequence[Pair] | str | None
    contact_states: Array
    limits: bool | None
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
    model_parameters: Mapping[str, Array] | None = None,
    ctrl: Any = None,
    act: Array = None,
    integrator: str = "semi-implicit",
    start: float = 0.0,
    dissipation: bool | None = None,
    contacts: Sequence[Pair] | str | None = None,
    contact_states: Array = None,
    limits: bool | None = None,
    threads: int | None = None,
) -> tuple[Rollout | Stepped, Course]:
    """Return the compiled step for the options, and the inputs of the rollout."""
    if tau is not None and control is not None:
        raise ArgumentError("E-MOTION-103", "pass `tau` or `control`, not both", part="rollout")
    tau = tau if control is None else control
    if ctrl is not None:
        if tau is not None:
            raise ArgumentError("E-MOTION-144", "pass `ctrl` or `tau`, not both", part="rollout")
        tau = Controls.of(ctrl)
    numbers = checked_steps(dt, steps, every, start, threads)
    law, rows = with_samples(robot.model, tau, ctrl, integrator)
    made: Rollout | Stepped
    plan = Plan(
        integrator=integrator,
        dissipation=dissipation,
        parameters=parameters,
        model_parameters=model_parameters,
        contacts=() if contacts is None else contacts,
        limits=limits,
    )
    if integrator == TIME_STEPPING:
        plan = with_file(robot, plan)
        check_names(robot.model.source, plan)
        made = stepping.prepared(robot, plan, numbers[0], law, q)
    else:
        limited = limits is not None and limits is not False
        for name, given in (("limits", limited), ("contacts", contacts == "file")):
            if given:
                problem = f"`{name}` needs integrator {TIME_STEPPING!r}, not {integrator!r:.60}"
                raise ArgumentError("E-MOTION-196", problem, part="rollout")
        check_names(robot.model.source, plan)
        dissipation = False if dissipation is None else dissipation
        free = tuple(model_parameters or ())
        rest = (dissipation, contacts, numbers[0], parameters)
        made = prepared(robot, integrator, law, *rest, free=free)
        place = q if q is None or library_of(q) else some_numbers("q", q, "rollout")
        check_damping("rollout", robot, place, numbers[0], integrator, tau, dissipation=dissipation)
    driven = isinstance(tau, Controls)
    forces = None if driven or callable(tau) else tau
    start_of = (q, qd, forces, contact_states, parameters)
    own = ctrl if driven and not callable(ctrl) else None
    if rows is not None:
        own = alike(rows(numbers[3], numbers[0], numbers[1]), q)
    values = given_values(robot.model.source, plan.contacts, model_parameters, "rollout")
    return made, Course(*start_of, *numbers, ctrl=own, act=act, model_parameters=values)


@renamed(method="integrator")
@shown(Steps, _course.__kwdefaults__)
def rollout(
    robot: Machine, q: Numbers, qd: Numbers, tau: Any = None, **options: Unpack[Steps]
) -> Trajectory:
    """Simulate a robot in compiled steps of fixed size.

    Parameters
    ----------
    robot : Robot
        The robot, which must not depend on time. Only the integrator "time-stepping" supports
        closed loops. For other robots, use `simulate`.
    q : array_like, shape (..., nq)
        Initial joint positions (rad or m).
    qd : array_like, shape (..., nv)
        Initial joint velocities (rad/s or m/s).
    tau, control : array_like or controller, optional
        Joint torques (N m or N), under either name: constant (nv,), one row per step (..., steps,
        nv), or a controller that is traced into the step. A controller is `PDControl`,
        `GravityCompensation` or `ComputedTorque` of `chasles.rollouts`, whose target may be a
        trajectory, or a function tau(t, q, qd) that returns nv values and uses only arithmetic and
        functions of `chasles.expr`.
    ctrl : array_like or function, optional
        Actuator controls instead of joint torques: constant (nu,), one row per step
        (..., steps, nu), a function or a trajectory, as in `simulate`.
    act : array_like, shape (..., na), optional
        Initial activations. Default: zero.
    dt : float
        Step size (s).
    steps : int
        Number of steps.
    every : int, optional
        Number of steps between recorded states; the last state is always recorded.
    parameters : array_like, shape (..., m), optional
        Parameters p of a controller tau(t, q, qd, p), which is traced only once for all values.
    model_parameters : mapping from str to array_like, optional
        Values of robot and contact parameters in this rollout, as in `simulate`.
    integrator : {"semi-implicit", "euler", "heun2", "heun3", "rk4", "time-stepping"}, optional
        Integrator on the configuration space. The first five have order 1, 1, 2, 3 and 4,
        respectively. "time-stepping" supports rigid contact, joint limits and dry friction
        (docs/time-stepping.md).
    start : float, optional
        Initial time (s).
    dissipation : bool, optional
        Include damping and dry friction of joints. The default is as in `simulate`.
    contacts : sequence of Pair, optional
        Pairs of shapes with a soft law, `contact.Pair(body, surface, SoftContact(...))`. For
        "time-stepping", pairs with the law `Rigid(...)` or `Compliant(...)`, or "file", as in
        `simulate`.
    contact_states : array_like, shape (..., states), optional
        Initial internal states of soft surfaces and friction. Default: zero.
    limits : bool, optional
        Stop joints at their limits ("time-stepping" only). The default is as in `simulate`.
    threads : int, optional
        Number of threads. Default: all available threads for large batches.

    Returns
    -------
    Trajectory
        Recorded states. `Trajectory.touching` holds forces, gaps and states of contacts. If the
        step size is too large for the stiffness or damping of the ground, `Trajectory.unstable`
        holds the first unstable step, and a warning is issued (not on a GPU).

    Raises
    ------
    ArgumentError
        If a keyword argument is unknown, if two of `tau`, `control` and `ctrl` are given, if an
        option needs another integrator, or if an option has the wrong type.
    InputError
        If an array has the wrong shape or is not finite, if `integrator` or an option is not valid,
        or if `dt` is too large for the damping of a joint.
    ModelError
        If the robot depends on time, if it has closed loops and `integrator` is not
        "time-stepping", or if it or a contact law is not supported.

    Notes
    -----
    With CuPy arrays, the motion is computed on their GPU in one launch, in float32 if all arrays
    are float32, without checks for finite values.

    With PyTorch (on the CPU) or JAX arrays, `q` and `qd` of the result are arrays from that
    library, differentiable once (through `rollout_pullback`); the result has no other records. The
    motion is computed in float64 on the CPU. Gradients with respect to quaternions are tangent to
    the unit sphere.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.planar(2)
    >>> robot.rollout([0.0, 0.5], [0.0, 0.0], dt=0.001, steps=10).q.shape
    (11, 2)
    """
    check_keywords("rollout", options, Steps.__annotations__)
    made, course = _course(robot, q, qd, tau, **options)
    library = tensors.array_library(course)
    if library is not None:
        return tensors.moved(robot, made, course, library)
    return watching.told("rollout", made(course))


@renamed(method="integrator")
@shown(Steps, _course.__kwdefaults__)
def rollout_pullback(
    robot: Machine,
    q: Numbers,
    qd: Numbers,
    tau: Any = None,
    *,
    covectors: Sequence[Array],
    **options: Unpack[Steps],
) -> RolloutGradient:
    """Return the gradient of a function of a trajectory with respect to the rollout's inputs.

    `covectors` contains the derivatives of the function with respect to the recorded states. The
    inputs are the initial state, the torques, the controller's parameters and the model parameters.

    Parameters
    ----------
    robot, q, qd, tau : Robot and array_like
        As in `rollout`. All arrays must be NumPy arrays.
    **options
        Options of `rollout`.
    covectors : tuple of array_like, shape (..., n, nv)
        Derivatives of the function with respect to the recorded q and qd; None stands for zero.
        Changes of q are displacements, as in `integrate`.

    Returns
    -------
    RolloutGradient
        Gradients for each member of a batch, including gradients with respect to shared inputs.
        Entries for inputs that were not given are None.

    Raises
    ------
    ArgumentError
        If a keyword argument is unknown, if two of `tau`, `control` and `ctrl` are given, if an
        option needs another integrator, or if an option has the wrong type.
    InputError
        If an array has the wrong shape or is not finite, if `integrator` or an option is not valid,
        or if `dt` is too large for the damping of a joint.
    ModelError
        If the robot depends on time, if it has closed loops and `integrator` is not
        "time-stepping", or if it or a contact law is not supported.
    NotFiniteError
        If the gradient is not finite.

    Notes
    -----
    Memory grows with the square root of `steps`, in addition to the arguments and results (adjoint
    method with checkpoints: Griewank and Walther 2008, chapter 12).

    A step of "time-stepping" is differentiated at its solution by the implicit function theorem.
    The gradient is exact as long as small changes do not alter which contacts and limits act, stick
    or slide in the step. Where a contact is made or lost, or begins to stick or to slide, the
    result has a kink (with restitution, a jump), and the gradient is one-sided. With closed loops,
    gradients apply to changes of q and qd that satisfy the loop constraints. Gradients are not
    supported with height fields.

    Examples
    --------
    >>> import chasles, numpy as np
    >>> robot = chasles.robots.planar(2)
    >>> dq = np.zeros((4, 2))
    >>> dq[-1] = 1.0, 0.0  # the first joint position at the end
    >>> q, qd = [0.0, 0.5], [0.0, 0.0]
    >>> found = robot.rollout_pullback(q, qd, covectors=(dq, None), dt=0.01, steps=3)
    >>> found.q.round(3)
    array([0.998, 0.001])
    """
    check_keywords("rollout_pullback", options, Steps.__annotations__)
    made, course = _course(robot, q, qd, tau, **options)
    found = made.pullback(course, covectors)
    given = options.get("ctrl")
    return found._replace(ctrl=None) if given is None or callable(given) else found
