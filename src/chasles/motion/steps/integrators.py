"""Every integrator: tables of Runge and Kutta, explicit and implicit, and steps of their own.

All work on the configuration space, so that rotations stay rotations. `INTEGRATORS` has a row for
each by name.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from chasles.errors import InputError, ModelError, NotFiniteError
from chasles.mechanisms import Mechanism
from chasles.motion.steps.system import ONE, Advance, Advanced, Local, System, Weights

# Runge and Kutta ---------------------------------------------------------------------------------

ITERATIONS = 30
"""Newton's at most; three to five are usual."""

SOLVED = 1e-12
"""Correction below which Newton's method ends, relative to 1 and the size of the stage."""


@dataclass(frozen=True)
class Table:
    """Butcher's table: stage i is at the time c[i] h and at y + h (sum of A[i][j] k[j] + own k[i]).

    own: zero of explicit methods, and the same for all stages of others. error: what to multiply
    the stages by for the difference to the method of lower order. dense: a row for each stage,
    coefficients of part, part^2, ... in its weight after a part of the step.
    """

    c: tuple[float, ...]
    A: tuple[Weights, ...]
    b: Weights
    error: Weights | None = None
    dense: np.ndarray | None = None
    own: float = 0.0

    @property
    def explicit(self) -> bool:
        """Return True if no stage needs itself."""
        return not self.own

    def __call__(self, system: System, h: Any, y: Any) -> Advanced:
        """A step of h seconds, by the method of vectors for y (Munthe-Kaas 1998)."""
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
    """Implicit stages Y = base + a f(Y), with slopes of f that serve all stages while they do."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._slopes: np.ndarray | None = None

    def stage(self, s: float, base: np.ndarray, a: float) -> np.ndarray:
        """k = f(Y) = (Y - base) / a, which keeps what f of a stiff system would lose."""
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
        remedy = "reduce dt, or check tau"
        raise NotFiniteError("E-MOTION-060", problem, remedy, part="simulate")

    def _differences(self, s: float, y: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """The slopes of the rates by y, (..., n, n): good to half the digits, which is enough."""
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
"""Heun's of two points and second order; within the step the integral of the line through its rates
(Featherstone 2008, section 11.5)."""

HEUN_3 = Table(
    (0.0, 1.0 / 3.0, 2.0 / 3.0),
    _rows("", "1/3", "0 2/3"),
    Weights.exact("1/4 0 3/4"),
    dense=_matrix("1 -9/4 3/2", "0 3 -3", "0 -3/4 3/2"),
)
"""Heun's of three points and third order; within the step the integral of the parabola through its
rates, of second order (Featherstone 2008, section 11.5)."""

RUNGE_KUTTA_4 = Table(
    (0.0, 0.5, 0.5, 1.0),
    _rows("", "1/2", "0 1/2", "0 0 1"),
    Weights.exact("1/6 1/3 1/3 1/6"),
)
"""The classical method of fourth order."""

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
"""Fifth order with an error of fourth (Dormand and Prince 1980), within the step of fourth order
(Shampine 1986; Hairer, Norsett and Wanner 1993, section II.6)."""

IMPLICIT_EULER = Table((1.0,), _rows(""), ONE, own=1.0)
"""Backward Euler: first order, damps whatever is stiff (L-stable)."""

_GAMMA = 1.0 - 0.5**0.5

SDIRK_2 = Table(
    (_GAMMA, 1.0),
    (*_rows(""), Weights(np.array([1.0 - _GAMMA]))),
    Weights(np.array([1.0 - _GAMMA, _GAMMA])),
    own=_GAMMA,
)
"""Two implicit stages of second order, L-stable (Alexander 1977)."""


# Semi-implicit Euler -----------------------------------------------------------------------------


def semi_implicit(system: System, h: Any, y: Any) -> Advanced:
    """qd1 = qd + h qdd and q1 = integrate(q, h qd1): first order."""
    return Advanced(system.led(system.moved(y, h, ONE, [system.first(y)]), h))


def semi_implicit_mixed(local: Local, h: float, y: np.ndarray) -> Advanced:
    """The same with the linear velocity of free joints along the axes of their parent.

    Then u1 = u + h udot, where u = R v and udot = R (vdot + w x v), x1 = x + h u1, and the rotation
    goes on by itself: what MuJoCo's Euler does, whose velocities of a free joint are (u, w).
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
    """Vectors (..., 3) turned by quaternions (w, x, y, z) of any length."""
    w, u = quaternion[..., :1], quaternion[..., 1:]
    across = np.cross(u, v)
    length = np.sum(quaternion * quaternion, axis=-1, keepdims=True)
    return v + (2.0 / length) * (w * across + np.cross(u, across))


# The symplectic integrator -----------------------------------------------------------------------

MIDPOINTS = 100
"""At most; five to ten are usual, each better by a factor of about h times the fastest rate."""

ROUNDED = 1e-11
"""Change, relative to the step, below which an iteration that no longer improves ends at rounding.
"""


def variational(local: Local, h: float, y: np.ndarray) -> Advanced:
    """A step that makes the action h L(q_m, d/h) stationary, q_m = integrate(q, d/2).

    Momenta p = M qd at both ends are the derivatives of that action by the ends (Marsden and West
    2001, section 1.5; on groups, Bou-Rabee and Marsden 2009): with the slopes D(a, b) of
    difference(a, b) by b, which are 1 where steps add, and the force f at the middle,

        p0 = D(q1, q0)' (p_m - h/2 D(q1, q_m)^-T f),  p1 = D(q0, q1)' (p_m + h/2 D(q0, q_m)^-T f).

    The first gives the step d; the second order of the rule is that of qd = M^-1 p too. Energy
    stays within a band, and momenta that the forces leave alone stay as they are: of a robot that
    floats linear momentum p, and angular momentum about fixed points. About the center of mass c it
    is L - c x p, of second order as c is.
    """
    mechanism, q, n = local.mechanism, local.q, local.nv
    mass = mechanism.mass_matrix

    def turned(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """D(a, b)'."""
        return np.swapaxes(mechanism.derivatives("difference", a, b, wrt="q1"), -1, -2)

    def middle_and_end(d: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Both positions, and the force at the first: dT/dq, gravity and all that is applied."""
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
        raise NotFiniteError("E-MOTION-069", problem, "reduce dt", part="simulate")
    middle, end, f = middle_and_end(d)
    p_end = _applied(mass(middle), d / h) + 0.5 * h * _solved(turned(q, middle), f)
    qd = _solved(mass(end), _applied(turned(q, end), p_end))
    return Advanced(np.concatenate([d, qd, y[..., 2 * n :]], -1))


def _applied(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return (matrix @ vector[..., None])[..., 0]


def _solved(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return np.linalg.solve(matrix, vector[..., None])[..., 0]


# The table ---------------------------------------------------------------------------------------

Free = Literal["body", "mixed"]
"""Along which axes the linear velocity of a free joint is stepped: its body's, or its parent's."""


class Integrator(NamedTuple):
    """advance: a step. order: the power of dt with which the error falls at a given time.

    adaptive: it estimates its error, and chooses its steps. mixed: the step for free="mixed".
    hamiltonian: only for mechanisms that have a Hamiltonian in the coordinates of the tree.
    """

    advance: Advance
    order: int
    adaptive: bool = False
    mixed: Advance | None = None
    hamiltonian: bool = False

    @property
    def traced(self) -> bool:
        """Return True if its steps can be compiled: explicit ones of given length."""
        explicit = isinstance(self.advance, Table) and self.advance.explicit
        return not self.adaptive and (explicit or self.advance is semi_implicit)


INTEGRATORS = {
    "euler": Integrator(EULER, 1),
    "heun2": Integrator(HEUN_2, 2),
    "heun3": Integrator(HEUN_3, 3),
    "rk4": Integrator(RUNGE_KUTTA_4, 4),
    "dopri5": Integrator(DORMAND_PRINCE, 5, adaptive=True),
    "semi-implicit": Integrator(semi_implicit, 1, mixed=semi_implicit_mixed),
    "implicit-euler": Integrator(IMPLICIT_EULER, 1),
    "sdirk2": Integrator(SDIRK_2, 2),
    "variational": Integrator(variational, 2, hamiltonian=True),
}
"""Every integrator of `simulate`."""


def known(name: str) -> Integrator:
    """An integrator by its name."""
    if not isinstance(name, str) or name not in INTEGRATORS:
        names = ", ".join(map(repr, INTEGRATORS))
        problem = f"unknown integrator {name!r}"
        raise InputError("E-MOTION-046", problem, f"known are {names}", part="simulate")
    return INTEGRATORS[name]


def chosen(mechanism: Mechanism, name: str, free: Free) -> tuple[Integrator, Advance]:
    """An integrator and its step, if they suit the robot."""
    integrator = known(name)
    if free not in get_args(Free):
        problem = f"free must be 'body' or 'mixed', not {free!r}"
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
    """Refuse a mechanism without a Hamiltonian in the coordinates of its tree.

    A rotor has none where velocities are not rates: its momentum would turn with the body.
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
        problem = f"integrator {name!r} needs a Hamiltonian tree: {reasons[0]}"
        part = f"simulate: robot {mechanism.name!r}"
        raise ModelError("E-MOTION-049", problem, "use 'rk4' or 'dopri5'", part=part)
