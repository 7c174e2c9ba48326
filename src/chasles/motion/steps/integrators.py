"""Integrators: Runge-Kutta, semi-implicit and variational methods.

All integrators work on the configuration space, so that rotations remain rotations. The table
`INTEGRATORS` lists the integrators by name.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from chasles.errors import InputError, ModelError, NotFiniteError
from chasles.mechanisms import Mechanism
from chasles.motion.steps.system import ONE, Advance, Advanced, Local, System, Weights
from chasles.names import one_of

# Runge-Kutta methods -----------------------------------------------------------------------------

ITERATIONS = 30
"""Maximum number of Newton iterations per implicit stage; three to five are typical."""

SOLVED = 1e-12
"""Convergence tolerance for Newton corrections of a stage value x, relative to 1 + |x|."""


@dataclass(frozen=True)
class Table:
    """Butcher tableau of a Runge-Kutta method.

    In a step of size h from y, stage i is evaluated at the time c[i] h and at the value
    y + h (sum of A[i][j] k[j] + own k[i]), where k contains the rates at the stages.

    Attributes
    ----------
    c : tuple[float, ...]
        Times of the stages, as fractions of the step.
    A : tuple[Weights, ...]
        Weights of the previous stages, one row per stage.
    b : Weights
        Weights of the stages in the result.
    own : float
        Diagonal entry of A, the same for all stages; zero for explicit methods.
    error : Weights | None
        Weights of the stages in the error estimate, or None without an embedded method.
    dense : np.ndarray | None
        Coefficients of the interpolant, one row per stage: the polynomial in x, x^2, ... is the
        weight of the stage after a fraction x of the step.
    """

    c: tuple[float, ...]
    A: tuple[Weights, ...]
    b: Weights
    error: Weights | None = None
    dense: np.ndarray | None = None
    own: float = 0.0

    @property
    def explicit(self) -> bool:
        """Return True if the method is explicit: no stage depends on its own rate."""
        return not self.own

    def __call__(self, system: System, h: Any, y: Any) -> Advanced:
        """Take a Runge-Kutta step of size h (s) from the state vector y (Munthe-Kaas 1998)."""
        k = system.stages(len(self.c), y)
        newton = Newton(system) if self.own else None
        for i, (c, row) in enumerate(zip(self.c, self.A, strict=True)):
            if newton is not None:
                k[i] = newton.stage(c * h, system.moved(y, h, row, k), self.own * h)
            else:
                k[i] = system.rates(c * h, system.moved(y, h, row, k)) if c else system.first(y)
        last = system.moved(y, h, self.b, k)
        error = None if self.error is None else system.moved(y, h, self.error, k) - y
        if (dense := self.dense) is None:
            return Advanced(last, error)
        powers = np.arange(1, dense.shape[1] + 1)

        def within(part: float) -> np.ndarray:
            return system.moved(y, h, Weights(dense @ part**powers), k)

        return Advanced(last, error, within)


class Newton:
    """Newton solver for implicit Runge-Kutta stages Y = base + a f(Y).

    The Jacobian is reused while the iteration converges fast.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        self._slopes: np.ndarray | None = None

    def stage(self, s: float, base: np.ndarray, a: float) -> np.ndarray:
        """Return the rate k of the stage Y at the time s (s) after the start of the step.

        The rate is computed as (Y - base) / a, which is more accurate than f(Y) for a stiff system.
        """
        Y, last = base, np.inf
        one = np.eye(base.shape[-1])
        for _ in range(ITERATIONS):
            rates = self._system.rates(s, Y)
            if self._slopes is None:
                self._slopes = self._differences(s, Y, rates)
            wrong = base + a * rates - Y
            change = np.linalg.solve(one - a * self._slopes, wrong[..., None])[..., 0]
            Y = Y + change
            size = float(np.max(np.abs(change) / (1.0 + np.abs(Y)), initial=0.0))
            if size <= SOLVED:
                return (Y - base) / a
            if size > 0.1 * last:
                self._slopes = None
            last = size
        problem = f"Newton's method did not converge in the step after t = {self._system.t:.6g} s"
        remedy = "reduce `dt`, or check `tau`"
        raise NotFiniteError("E-MOTION-060", problem, remedy, part="simulate")

    def _differences(self, s: float, y: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """Return the Jacobian (..., n, n) of the rates, computed by finite differences."""
        columns = []
        for k in range(y.shape[-1]):
            step = 1e-8 * (1.0 + np.abs(y[..., k]))
            moved = y.copy()
            moved[..., k] += step
            columns.append((self._system.rates(s, moved) - rates) / step[..., None])
        return np.stack(columns, axis=-1)


def _rows(*rows: str) -> tuple[Weights, ...]:
    return tuple(map(Weights.exact, rows))


def _matrix(*rows: str) -> np.ndarray:
    return np.array([w.unit * w.parts for w in map(Weights.exact, rows)])


EULER = Table((0.0,), _rows(""), ONE, dense=_matrix("1"))
"""Euler's method (Featherstone 2008, Eq 11.45)."""

HEUN_2 = Table(
    (0.0, 2.0 / 3.0),
    _rows("", "2/3"),
    Weights.exact("1/4 3/4"),
    dense=_matrix("1 -3/4", "0 3/4"),
)
"""Heun's two-stage method of second order. The interpolant is the integral of the line through the
stage rates (Featherstone 2008, section 11.5).
"""

HEUN_3 = Table(
    (0.0, 1.0 / 3.0, 2.0 / 3.0),
    _rows("", "1/3", "0 2/3"),
    Weights.exact("1/4 0 3/4"),
    dense=_matrix("1 -9/4 3/2", "0 3 -3", "0 -3/4 3/2"),
)
"""Heun's three-stage method of third order. The second-order interpolant is the integral of the
parabola through the stage rates (Featherstone 2008, section 11.5).
"""

RUNGE_KUTTA_4 = Table(
    (0.0, 0.5, 0.5, 1.0),
    _rows("", "1/2", "0 1/2", "0 0 1"),
    Weights.exact("1/6 1/3 1/3 1/6"),
)
"""Classical Runge-Kutta method of fourth order."""

DORMAND_PRINCE = Table(
    (0.0, 0.2, 0.3, 0.8, 8.0 / 9.0, 1.0, 1.0),
    _rows(
        "",
        "1/5",
        "3/40 9/40",
        "44/45 -56/15 32/9",
        "19372/6561 -25360/2187 64448/6561 -212/729",
        "9017/3168 -355/33 46732/5247 49/176 -5103/18656",
        "35/384 0 500/1113 125/192 -2187/6784 11/84",
    ),
    Weights.exact("35/384 0 500/1113 125/192 -2187/6784 11/84 0"),
    Weights.exact("71/57600 0 -71/16695 71/1920 -17253/339200 22/525 -1/40"),
    dense=_matrix(
        "1 -8048581381/2820520608 8663915743/2820520608 -12715105075/11282082432",
        "0 0 0 0",
        "0 131558114200/32700410799 -68118460800/10900136933 87487479700/32700410799",
        "0 -1754552775/470086768 14199869525/1410260304 -10690763975/1880347072",
        "0 127303824393/49829197408 -318862633887/49829197408 701980252875/199316789632",
        "0 -282668133/205662961 2019193451/616988883 -1453857185/822651844",
        "0 40617522/29380423 -110615467/29380423 69997945/29380423",
    ),
)
"""Fifth-order method with a fourth-order error estimate (Dormand and Prince 1980) and a
fourth-order interpolant (Shampine 1986; Hairer, Norsett and Wanner 1993, section II.6).
"""

IMPLICIT_EULER = Table((1.0,), _rows(""), ONE, own=1.0)
"""Backward Euler method of first order, which is L-stable and damps all stiff modes."""

_GAMMA = 1.0 - 0.5**0.5

SDIRK_2 = Table(
    (_GAMMA, 1.0),
    (*_rows(""), Weights(np.array([1.0 - _GAMMA]))),
    Weights(np.array([1.0 - _GAMMA, _GAMMA])),
    own=_GAMMA,
)
"""L-stable second-order method with two implicit stages (Alexander 1977)."""


# Semi-implicit Euler -----------------------------------------------------------------------------


def semi_implicit(system: System, h: Any, y: Any) -> Advanced:
    """Take a first-order semi-implicit step: qd1 = qd + h qdd, q1 = integrate(q, h qd1)."""
    return Advanced(system.led(system.moved(y, h, ONE, [system.first(y)]), h))


def semi_implicit_mixed(local: Local, h: float, y: np.ndarray) -> Advanced:
    """Take a semi-implicit step, with linear velocities of free joints in the parent's axes.

    For a free joint at position x with orientation R, the step is u1 = u + h udot and x1 = x +
    h u1, where u = R v and udot = R (vdot + w x v). The rotation is integrated separately. The
    method is MuJoCo's Euler method; in MuJoCo, the velocities of a free joint are (u, w).
    """
    mechanism, q, n = local.mechanism, local.position, local.nv
    rates = local.first(y)
    qd, qdd = local.velocity(y), local.velocity(rates)
    speed = qd + h * qdd
    d, moves = h * speed, []
    for i, slot in mechanism.model.velocity_slices.items():
        if mechanism.model.bodies[i].joint.floating:
            turn = slice(slot.start, slot.start + 3)
            shift = slice(slot.start + 3, slot.stop)
            place = mechanism.model.position_slices[i].start
            R = slice(place, place + 4)
            change = qdd[..., shift] + np.cross(qd[..., turn], qd[..., shift])
            u = _turned(q[..., R], qd[..., shift] + h * change)
            d[..., shift] = 0.0
            moves.append((R, slice(place + 4, place + 7), shift, u))
    there = mechanism.integrate(q, d)
    for R, x, shift, u in moves:
        there[..., x] += h * u
        speed[..., shift] = _turned(there[..., R] * [1.0, -1.0, -1.0, -1.0], u)
    last = y + h * rates
    last[..., :n], last[..., n : 2 * n] = mechanism.difference(q, there), speed
    last[..., last.shape[-1] - len(local.path) :] = there[..., local.path]
    return Advanced(last)


def _turned(quaternion: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return vectors (..., 3) rotated by quaternions (w, x, y, z) of any length."""
    w, u = quaternion[..., :1], quaternion[..., 1:]
    across = np.cross(u, v)
    length = np.sum(quaternion * quaternion, axis=-1, keepdims=True)
    return v + (2.0 / length) * (w * across + np.cross(u, across))


# Symplectic integrator ---------------------------------------------------------------------------

MIDPOINTS = 100
"""Maximum number of fixed-point iterations in a variational step; five to ten are typical. Each
iteration multiplies the error by about the step size times the fastest rate.
"""

ROUNDED = 1e-11
"""Tolerance for the relative change in an iteration of a variational step. Iterations end when the
change is below the tolerance and no longer decreases by half.
"""


def variational(local: Local, h: float, y: np.ndarray) -> Advanced:
    """Take a step d from q0 to q1 that makes the action of the motion stationary.

    The action of a step of h seconds is h times the Lagrangian at the midpoint q_m = integrate(q0,
    d/2) with the velocities d/h. The momenta p = M qd at both ends are the derivatives of the
    action with respect to the ends (Marsden and West 2001, section 1.5; on groups, Bou-Rabee and
    Marsden 2009). Let D(a, b) be the derivative of difference(a, b) with respect to b (the identity
    for additive coordinates), and let p_m = M d/h be the momenta and f the generalized force at
    the midpoint. Then

        p0 = D(q1, q0)' (p_m - h/2 D(q1, q_m)^-T f),  p1 = D(q0, q1)' (p_m + h/2 D(q0, q_m)^-T f).

    The first equation determines the step d; qd = M^-1 p is accurate to second order. The error
    of the energy is bounded. Momenta that are constant in the exact motion are also constant here:
    for a floating robot without external forces, the linear momentum and the angular momentum
    about fixed points. The angular momentum about the center of mass is accurate to second order,
    like the position of the center of mass.
    """
    mechanism, q, n = local.mechanism, local.q, local.nv
    mass = mechanism.mass_matrix

    def turned(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the transposed derivative of difference(a, b) with respect to b."""
        return np.swapaxes(mechanism.derivatives("difference", a, b, wrt="q1"), -1, -2)

    def middle_and_end(d: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the midpoint and end of the step, and the generalized force at the midpoint.

        The force is the sum of dT/dq, gravity and applied forces.
        """
        middle, qd = mechanism.integrate(q, 0.5 * d), d / h
        qdd = local.accelerate(local.t + 0.5 * h, middle, qd)
        slope = mechanism.derivatives("kinetic_energy", middle, qd, wrt="q")
        if mechanism.model.loaded:
            pull = mechanism.derivatives("potential_energy", middle, wrt="q")
        else:
            pull = mechanism.gravity_forces(middle)
        f = slope - pull + mechanism.inverse_dynamics(middle, qd, qdd)
        return middle, mechanism.integrate(q, d), f

    p = _applied(mass(q), local.velocity(y))
    d, last = h * local.velocity(y), np.inf
    for _ in range(MIDPOINTS):
        middle, end, f = middle_and_end(d)
        p_middle = _solved(turned(end, q), p) + 0.5 * h * _solved(turned(end, middle), f)
        better = h * _solved(mass(middle), p_middle)
        size = float(np.max(np.abs(better - d), initial=0.0))
        scale = float(np.max(np.abs(better), initial=0.0))
        d = better
        if size == 0.0 or (size <= ROUNDED * scale and size > 0.5 * last):
            break
        last = size
    else:
        problem = f"the step after t = {local.t:.6g} s did not converge"
        raise NotFiniteError("E-MOTION-069", problem, "reduce `dt`", part="simulate")
    middle, end, f = middle_and_end(d)
    p_end = _applied(mass(middle), d / h) + 0.5 * h * _solved(turned(q, middle), f)
    qd = _solved(mass(end), _applied(turned(q, end), p_end))
    return Advanced(np.concatenate([d, qd, y[..., 2 * n :]], -1))


def _applied(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return (matrix @ vector[..., None])[..., 0]


def _solved(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return np.linalg.solve(matrix, vector[..., None])[..., 0]


# Integrators by name -----------------------------------------------------------------------------

Free = Literal["body", "mixed"]
"""Axes along which the linear velocity of a free joint is integrated: body axes ("body") or the
axes of the parent ("mixed")."""


class Integrator(NamedTuple):
    """Integrator for simulations.

    Attributes
    ----------
    advance : Advance
        Step function.
    order : int
        Order of accuracy: errors are proportional to dt^order.
    adaptive : bool
        True if the integrator estimates its error and chooses step sizes.
    mixed : Advance | None
        Step function for free="mixed" (linear velocity of free joints in the parent's axes).
    hamiltonian : bool
        True if the integrator requires a mechanism with a Hamiltonian in joint coordinates (see
        `_check_hamiltonian`).
    damped : float
        Stability limit: the largest product of dt and the decay rate of any velocity.
    """

    advance: Advance
    order: int
    adaptive: bool = False
    mixed: Advance | None = None
    hamiltonian: bool = False
    damped: float = np.inf

    @property
    def traced(self) -> bool:
        """Return True for explicit and semi-implicit methods with a fixed step size."""
        explicit = isinstance(self.advance, Table) and self.advance.explicit
        return not self.adaptive and (explicit or self.advance is semi_implicit)


INTEGRATORS = {
    "euler": Integrator(EULER, 1, damped=2.0),
    "heun2": Integrator(HEUN_2, 2, damped=2.0),
    "heun3": Integrator(HEUN_3, 3, damped=2.513),
    "rk4": Integrator(RUNGE_KUTTA_4, 4, damped=2.786),
    "dopri5": Integrator(DORMAND_PRINCE, 5, adaptive=True),
    "semi-implicit": Integrator(semi_implicit, 1, mixed=semi_implicit_mixed, damped=2.0),
    "implicit-euler": Integrator(IMPLICIT_EULER, 1),
    "sdirk2": Integrator(SDIRK_2, 2),
    "variational": Integrator(variational, 2, hamiltonian=True),
}
"""Integrators for `simulate`, by name."""


def known(name: str) -> Integrator:
    """Return an integrator by name."""
    if not isinstance(name, str) or name not in INTEGRATORS:
        problem = f"unknown integrator {name!r}"
        remedy = one_of(name, (*INTEGRATORS, "time-stepping"))
        raise InputError("E-MOTION-046", problem, remedy, part="simulate")
    return INTEGRATORS[name]


def chosen(mechanism: Mechanism, name: str, free: Free) -> tuple[Integrator, Advance]:
    """Return an integrator and its step function, by name.

    An error is raised if the integrator does not support the robot.
    """
    integrator = known(name)
    if free not in get_args(Free):
        problem = f"`free` must be 'body' or 'mixed', not {free!r}"
        raise InputError("E-MOTION-047", problem, part="simulate")
    if integrator.hamiltonian:
        _check_hamiltonian(mechanism, name)
    if free == "body":
        return integrator, integrator.advance
    if integrator.mixed is None:
        problem = f"free='mixed' needs integrator 'semi-implicit', not {name!r}"
        raise InputError("E-MOTION-075", problem, part="simulate")
    mechanism.refuse_loops("simulate", "free='mixed' needs a robot without loops")
    return integrator, integrator.mixed


def _check_hamiltonian(mechanism: Mechanism, name: str) -> None:
    """Raise an error for a mechanism that has no Hamiltonian in its joint coordinates.

    An example is a joint with armature whose velocities are not time derivatives of coordinates:
    the momentum of its rotor would rotate with the body.
    """
    bodies = (mechanism.model.bodies[i] for i in mechanism.model.movers)
    joints = {body.data.name: body.joint for body in bodies}
    reasons = list(mechanism.traits)
    reasons += [f"joint {n!r} rolls" for n, joint in joints.items() if not joint.holonomic]
    reasons += [
        f"joint {n!r} of type {joint.kind!r} has armature"
        for n, joint in joints.items()
        if not joint.additive and any(joint.armature)
    ]
    if reasons:
        problem = f"integrator {name!r} does not support this robot: {reasons[0]}"
        part = f"simulate: robot {mechanism.name!r}"
        raise ModelError("E-MOTION-049", problem, "use 'rk4' or 'dopri5'", part=part)
