"""Starting configurations for inverse kinematics, and the compiled search that uses them."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import COMPILING
from chasles.functions.reaching import FIRM, MEMORY, MOST, SHARE, Task
from chasles.mathematics.linear import Vector
from chasles.mechanisms.mechanism import Mechanism
from chasles.model.constraints import Coupling
from chasles.model.joints import Joint
from chasles.model.model import Follow

SEED, TRIES, COUNT = 0, 200, 16
"""Default values of the options `seed`, `tries` and `count` of inverse kinematics."""

RANKED = 128
"""Number of starting configurations that are sorted by their distance to the targets."""

PATIENT = 40
"""Number of attempts with the settings `EAGER`; later attempts use `SLOW`, with more steps."""

FIRMLY = 5
"""Divisor that sets how many attempts use the settings `STEADY`: the last n // FIRMLY of n."""

EAGER, SLOW, STEADY, LAST = (
    (16.0, 0.5, 0.0),
    (60.0, 0.95, 0.0),
    (100.0, 0.9999, 1.0),
    (1000.0, 1.0 - 1e-12, 1.0),
)
"""Parameters of an attempt: maximum number of steps, maximum error ratio, extra damping factor.

The error ratio is the squared error divided by the squared error two steps earlier. An attempt is
abandoned if the error ratio exceeds its maximum. The extra damping, for unreachable goals, is the
factor times the norm of the error.

- EAGER: the first attempts.
- SLOW: attempts after the first PATIENT ones.
- STEADY: final attempts, which come close to the smallest error if a goal is out of reach.
- LAST: the last attempt, which starts at the best configuration and stops when the error no longer
  decreases.
"""

KEPT = 16
"""Maximum number of cached sets of starting configurations for a task."""

TURN = 2.0 * math.pi

UNITS = (Vector.of(1.0, 0.0, 0.0), Vector.of(0.0, 1.0, 0.0), Vector.of(0.0, 0.0, 1.0))

MOST_TURNS = 4
"""Range of a joint angle, in full turns, above which only one turn is sampled."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """Lower and upper limits (nq,) of the position coordinates."""

    lower: np.ndarray
    upper: np.ndarray


@dataclass(frozen=True, eq=False)
class Starts:
    """Starting configurations, a table for ranking them, and solver settings of each attempt."""

    postures: np.ndarray
    table: np.ndarray
    patience: np.ndarray


class Prepared:
    """Compiled search for a task, and cached starting configurations."""

    def __init__(self, mechanism: Mechanism, task: Task) -> None:
        self.mechanism, self.task = mechanism, task
        self.search = backends.search(task.step)
        self._starts: dict[tuple[Any, ...], Starts] = {}

    @cached_property
    def settling(self) -> Any:
        """Compiled search for the solution closest to a preferred configuration."""
        with COMPILING:
            return backends.search(self.task.settling)

    @cached_property
    def resident(self) -> Any:
        """Inverse-kinematics search compiled for a GPU."""
        with COMPILING:
            steps = [self.task.step_on("cuda", dtype) for dtype in ("float32", "float64")]
            return backends.search(*steps, backend="cuda")

    def starts(
        self, bounds: Bounds, seed: int, tries: int, held: tuple[tuple[int, float], ...]
    ) -> Starts:
        """Return starting configurations within the limits.

        `held` contains the index in q and the value of each fixed coordinate. Coordinates that do
        not affect the target frames have their neutral values.
        """
        key = (seed, tries, held)
        if key not in self._starts:
            postures = spread(self.mechanism, bounds, RANKED + tries, seed)
            idle, still = self.task.idle, self.mechanism.neutral()
            postures[:, idle] = np.clip(still, bounds.lower, bounds.upper)[idle]
            for place, value in held:
                postures[:, place] = value
            met = np.empty((RANKED, self.task.numbers))
            self.task.reached([postures[:RANKED]], [met])
            patience = np.zeros((tries + 1, MEMORY))
            patience[:, [MOST, SHARE, FIRM]] = EAGER
            patience[PATIENT:, [MOST, SHARE, FIRM]] = SLOW
            patience[tries - tries // FIRMLY :, [MOST, SHARE, FIRM]] = STEADY
            patience[-1, [MOST, SHARE, FIRM]] = LAST
            patience[:, FIRM] *= self._reach(met)
            while len(self._starts) >= KEPT:
                self._starts.pop(next(iter(self._starts)))
            table = self.search.table(met, self.task.weights())
            self._starts[key] = Starts(postures, table, patience)
        return self._starts[key]

    def _reach(self, met: np.ndarray) -> float:
        """Return a damping factor with which the search also converges for unreachable goals.

        With less damping, Gauss-Newton steps overshoot the minimum of the error. The necessary
        damping grows with the workspace, which is estimated from the positions of each target frame
        in all starting configurations. The factor is half of the largest distance of these
        positions from their mean, relative to the robot's size, and at least 1.
        """
        scale, found, start = np.sqrt(self.task.weights()), [1.0], 0
        for _, target in self.task.targets:
            numbers = slice(start + (9 if target.size >= 9 else 0), start + target.size)
            away = (met[:, numbers] - met[:, numbers].mean(axis=0)) * scale[numbers]
            found.append(0.5 * float(np.linalg.norm(away, axis=1).max(initial=0.0)))
            start += target.size
        return max(found)


def prepared(mechanism: Mechanism, task: Task) -> Prepared:
    """Return the prepared search for a task, from the cache if possible."""
    key = ("inverse kinematics", *task.key[2:])
    found: Prepared | None = mechanism.recent.get(key)
    if found is None:
        with COMPILING:
            found = mechanism.recent.get(key) or Prepared(mechanism, task)
            mechanism.recent[key] = found
    return found


def spread(mechanism: Mechanism, bounds: Bounds, count: int, seed: int) -> np.ndarray:
    """Return configurations (count, nq) that are evenly distributed within the limits.

    The configurations form an additive sequence with the generalized golden ratio (Roberts 2018),
    shifted by the seed; orientations are uniform (Shoemake 1992). Angles without limits, or with
    limits many turns apart, lie in [-pi, pi]; positions without limits lie in [-1, 1] m.
    """
    model, turning = mechanism.model, set(angles(mechanism))
    drawn = [_drawn(model.bodies[i].joint.units) for i in model.movers]
    size = sum(drawn)
    ratio = 2.0
    for _ in range(64):
        ratio = (1.0 + ratio) ** (1.0 / (size + 1.0))
    steps = ratio ** -np.arange(1.0, size + 1.0)
    shift = 0.5 if not seed else np.random.default_rng(seed).random(size)
    u = (shift + np.arange(1.0, count + 1.0)[:, None] * steps) % 1.0
    q = np.empty((count, mechanism.nq))
    for i, start, width in zip(model.movers, accumulate(drawn, initial=0), drawn, strict=False):
        joint, to = model.bodies[i].joint, model.position_slices[i]
        some, k = u[:, start : start + width], 0
        for place, unit in zip(range(to.start, to.stop), joint.units, strict=True):
            if unit == "1":
                continue
            reach = math.pi if unit == "rad" else 1.0
            low, high = _range(bounds.lower[place], bounds.upper[place], reach)
            if place in turning and high - low > MOST_TURNS * TURN:
                low = max(low, min(-reach, high - 2.0 * reach))
                high = low + 2.0 * reach
            q[:, place] = low + (high - low) * some[:, k + (3 if "1" in joint.units else 0)]
            k += 1
        if "1" in joint.units:
            a, b, c = some[:, 0], TURN * some[:, 1], TURN * some[:, 2]
            root, rest = np.sqrt(1.0 - a), np.sqrt(a)
            turn = (root * np.sin(b), root * np.cos(b), rest * np.sin(c), rest * np.cos(c))
            q[:, to.start : to.start + 4] = np.stack(turn, axis=-1)
    return q


def _range(low: float, high: float, reach: float) -> tuple[float, float]:
    """Return finite limits. An infinite range is replaced by a range of width 2 * reach."""
    if not math.isfinite(low):
        low = high - 2.0 * reach if math.isfinite(high) else -reach
    return low, high if math.isfinite(high) else low + 2.0 * reach


def _drawn(units: tuple[str, ...]) -> int:
    """Return how many random numbers in [0, 1) are needed for a random position of a joint."""
    return sum(unit != "1" for unit in units) + (3 if "1" in units else 0)


def angles(mechanism: Mechanism) -> list[int]:
    """Return the indices in q of angles that can change by 2 pi without changing any pose.

    The result excludes helical and similar joints, and joints in couplings. Joints with mimic
    joints are also excluded, unless a full turn of the joint turns the mimic joint by full turns.
    """
    if "angles" not in mechanism.kept:
        model = mechanism.model
        couplings = (each for each in model.constraints if isinstance(each, Coupling))
        coupled = {i for each in couplings for i, _ in each.places}
        moved = [(body, body.follow or Follow(i, 1.0, 0.0)) for i, body in enumerate(model.bodies)]
        uneven = {way.leader for body, way in moved if not _returns(body.joint, way.ratio)}
        mechanism.kept["angles"] = [
            model.position_slices[i].start
            for i in model.movers
            if model.bodies[i].joint.units == ("rad",) and i not in coupled | uneven
        ]
    found: list[int] = mechanism.kept["angles"]
    return found


def _returns(joint: Joint, ratio: float) -> bool:
    """Return True if a full turn of the leader does not change the pose of the mimic joint."""
    if joint.nq != 1:
        return True
    first, last = (joint.motion(Vector.of(x)) for x in (0.5, 0.5 + ratio * TURN))
    gaps = [first.E @ unit - last.E @ unit for unit in UNITS]
    return all(abs(x) <= 1e-9 for gap in (first.r - last.r, *gaps) for x in gap)
