"""Methods of Runge and Kutta by their tables, explicit and implicit, on the configuration space."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from chasles.errors import NotFiniteError
from chasles.motion.steps.system import ONE, Advanced, System, Weights

ITERATIONS = 30
"""Newton's at most; three to five are usual."""

SOLVED = 1e-12
"""Newton's method ends where its correction is below this, beside 1 and the size of the stage."""


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
            between: np.ndarray = system.moved(y, h, Weights.of(dense @ part**powers), k)
            return between

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
        problem = f"Newton's method does not find the step after t = {self._system.t:.6g} s"
        remedy = "make dt smaller, or look at tau"
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
    return np.array([Weights.exact(row).values for row in rows])


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
    (*_rows(""), Weights.of(np.array([1.0 - _GAMMA]))),
    Weights.of(np.array([1.0 - _GAMMA, _GAMMA])),
    own=_GAMMA,
)
"""Two implicit stages of second order, L-stable (Alexander 1977)."""
