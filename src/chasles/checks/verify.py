"""Everything that must hold of a robot, computed at random states of it."""

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from chasles.checks.comparing import Comparison, first_difference, relative_error
from chasles.checks.table import CHECKS, Check
from chasles.checks.trial import ARM, Raised, Subject, Trial, trial
from chasles.errors import InputError
from chasles.functions.doors import check_robot

STATES = 2
"""Random states by default."""

WIDEST = 1e-2
"""A tolerance that had to be wider than this would let anything pass: then nothing is checked."""


@dataclass(frozen=True)
class Result:
    """How well one check holds for one function and method: its worst error over the states.

    error: the largest difference beside the largest entry expected, infinite where there was no
    result; seed: of the state with that error; detail: the first entry that differs, or the error
    that was raised, where it is not ok; and why it is not checked, where it cannot be.
    """

    check: str
    function: str
    method: str
    error: float
    tolerance: float
    seed: int
    detail: str = ""

    @property
    def checked(self) -> bool:
        """Whether enough digits are left at this state of this robot to tell right from wrong."""
        return self.tolerance <= WIDEST

    @property
    def ok(self) -> bool:
        """Whether the error is within the tolerance, or cannot be known: lost digits explain any
        error, but not that there is no result."""
        return self.error <= self.tolerance or (not self.checked and math.isfinite(self.error))

    def __str__(self) -> str:
        what = f"{self.check}: {self.function}, {self.method}: error {self.error:.1e}"
        return f"{what} (tolerance {self.tolerance:.0e}, seed {self.seed}) {self.detail}".rstrip()


@dataclass(frozen=True)
class Verification:
    """What `verify` found: every check, function and method, with the worst error of each.

    left_out: in words, what of the robot was not looked at, and why.
    """

    robot: str
    results: tuple[Result, ...]
    full: bool = False
    left_out: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether everything holds."""
        return all(result.ok for result in self.results)

    @property
    def failures(self) -> tuple[Result, ...]:
        """What does not hold."""
        return tuple(result for result in self.results if not result.ok)

    @property
    def unchecked(self) -> tuple[Result, ...]:
        """What cannot be checked, since no digits are left: `detail` says why."""
        return tuple(result for result in self.results if not result.checked)

    @property
    def worst(self) -> dict[str, Result]:
        """Of each check, the result that is nearest to its tolerance, or farthest beyond."""
        found: dict[str, Result] = {}
        for result in self.results:
            other = found.get(result.check)
            if other is None or _rank(result) > _rank(other):
                found[result.check] = result
        return found

    def __str__(self) -> str:
        lines = [str(result) for result in self.failures]
        checked = f"{self.robot}: {len(self.results)} comparisons, {len(lines)} differ"
        unchecked = [f"unchecked: {line}" for line in (*self.left_out, *reasons(self.unchecked))]
        return "\n".join([checked, *lines, *unchecked])


def reasons(unchecked: Sequence[Result]) -> list[str]:
    """What could not be checked, in words: functions and methods, one line for each reason."""
    by: dict[str, dict[str, None]] = {}
    for result in unchecked:
        by.setdefault(result.detail, {})[f"{result.function}, {result.method}"] = None
    return [f"{'; '.join(names)}: {why}" for why, names in by.items()]


def _rank(result: Result) -> tuple[bool, float]:
    """What is checked before what is not; then how near to the tolerance, or how far beyond."""
    share = result.error / result.tolerance if result.tolerance else result.error * 1e300
    return result.checked, share


def verify(
    robot: Subject,
    *,
    seed: int = 0,
    states: int = STATES,
    full: bool = False,
    step: Callable[[str], None] = lambda name: None,
) -> Verification:
    """Check a robot's functions against each other and against physics, at random states.

    Every method of each function against the others, backends against `interpret`, energy and
    power, derivatives against differences, loops closed. seed: of the first state; the others
    follow. full: also closed forms for more than 12 freedoms, every function compiled, single
    precision, derivatives of programs. step: is told the name of each check before it runs.
    """
    check_robot("verify", robot)
    seed, states = (_count(name, x) for name, x in (("seed", seed), ("states", states)))
    if states == 0:
        raise InputError("E-VERIFY-002", "states must be 1 or more", part="verify")
    trials = [trial(robot, seed + k, full=full) for k in range(states)]
    found: dict[tuple[str, str, str], Result] = {}
    for result in results(trials, seed, checks(full=full), step=step):
        key = (result.check, result.function, result.method)
        worst = found.get(key)
        if worst is None or _rank(result) > _rank(worst):
            found[key] = result
    return Verification(str(robot.name), tuple(found.values()), full, left_out(trials[0]))


def left_out(at: Trial) -> tuple[str, ...]:
    """What of a robot is not looked at, and why."""
    lines = []
    if at.model.source.massless:
        lines.append("dynamics: no masses are known, so there is only kinematics")
    elif at.model.nv > ARM and not at.full:
        lines.append(f"closed forms: they are for {ARM} freedoms or fewer; full takes them too")
    return tuple(lines)


def checks(*, full: bool = False, compiled: bool = True) -> list[Check]:
    """The rows of the table that run: all, or less."""
    return [c for c in CHECKS if (full or not c.full) and (compiled or not c.compiled)]


def results(
    trials: Sequence[Trial],
    seed: int,
    chosen: Sequence[Check],
    *,
    step: Callable[[str], None] = lambda name: None,
) -> Iterator[Result]:
    """Every comparison of every check at every state, as it is made."""
    for check in chosen:
        step(check.name)
        for k, at in enumerate(trials):
            if check.loops and not at.robot.mechanism.rows:
                continue
            try:
                for compared in check.compare(at):
                    yield _judged(check, compared, seed + k)
            except Raised as error:
                yield Result(
                    check.name,
                    error.function,
                    error.method,
                    float("inf"),
                    check.tolerance,
                    seed + k,
                    str(error),
                )


def _judged(check: Check, compared: Comparison, seed: int) -> Result:
    tolerance = check.tolerance * compared.loss.times
    result = Result(
        check.name, compared.function, compared.method, relative_error(compared), tolerance, seed
    )
    if not result.checked:
        return replace(result, detail=compared.loss.why)
    return result if result.ok else replace(result, detail=first_difference(compared, tolerance))


def _count(name: str, value: object) -> int:
    try:
        count = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        count = -1
    if count < 0 or isinstance(value, bool):
        problem = f"{name} must be a whole number from 0 on, not {value!r}"
        raise InputError("E-VERIFY-003", problem, part="verify")
    return count
