"""Verify that a robot's functions satisfy the identities of mechanics at random states."""

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chasles.checks import agreement, closure, mechanics, slopes
from chasles.checks.comparing import Comparison, first_difference, relative_error
from chasles.checks.trial import ARM, Raised, Trial, trial
from chasles.errors import InputError, shown
from chasles.functions.doors import check_robot
from chasles.robot import Robot

STATES = 2
"""Default number of random states."""

WIDEST = 1e-2
"""Maximum tolerance. A check with a larger tolerance is skipped, because it would always pass."""


ROUNDING = 1e-11
"""Relative tolerance for results that differ only by rounding, such as the results of two methods.
The largest measured difference is 4e-13 (`python -m benchmarks verify`)."""

DIFFERENCES = 1e-8
"""Relative tolerance for finite differences. The largest measured error is 4e-10 (`linearize`)."""

SINGLE = 2e-3
"""Relative tolerance in single precision, sufficient for condition numbers of a few thousand."""


DYNAMICS = "inverse_dynamics"
"""Name of the function that a robot must support for checks that require link masses."""


@dataclass(frozen=True)
class Check:
    """A property that must hold at every state.

    `compare` yields the comparisons, whose relative errors must not exceed `tolerance`. `needs`
    names a function that the robot must support. `compiled` marks checks that compile programs,
    `full` marks checks that run only with `full=True`, and `loops` marks checks for robots with
    loops or couplings.
    """

    name: str
    compare: Callable[[Trial], Iterator[Comparison]]
    tolerance: float
    needs: str = ""
    compiled: bool = False
    full: bool = False
    loops: bool = False

    def suits(self, at: Trial) -> bool:
        """Return True if the check applies to the robot."""
        closed = not self.loops or len(at.units.closing) > 0
        return closed and (not self.needs or at.has(self.needs))


CHECKS: tuple[Check, ...] = (
    Check("methods agree", agreement.methods_agree, ROUNDING),
    Check("terms of the equations of motion", mechanics.terms_of_motion, ROUNDING, DYNAMICS),
    Check("sums over links", mechanics.sums_over_links, ROUNDING, "momentum"),
    Check("factors of the mass matrix", mechanics.factors, ROUNDING, "mass_matrix"),
    Check("regressor", mechanics.inertia_parameters, ROUNDING, DYNAMICS),
    Check("damping and friction", mechanics.dissipation, ROUNDING, DYNAMICS),
    Check("J qd and kinds of acceleration", slopes.jacobians_map_rates, ROUNDING),
    Check("representations of a velocity", slopes.views_of_velocity, ROUNDING),
    Check(
        "momentum is conserved under recoil",
        slopes.recoil_keeps_momentum,
        ROUNDING,
        "generalized_jacobian",
    ),
    Check("steps in the configuration space", slopes.steps_add_up, ROUNDING),
    Check("poses change at the computed velocities", slopes.poses_move, DIFFERENCES),
    Check("velocities accelerate", slopes.velocities_accelerate, DIFFERENCES),
    Check("Jacobians change", slopes.jacobians_change, DIFFERENCES),
    Check("Newton's and Euler's laws", mechanics.newton_and_euler, DIFFERENCES, "joint_reactions"),
    Check("power balance", mechanics.power_balance, DIFFERENCES, DYNAMICS),
    Check("gradients", slopes.gradients, DIFFERENCES, "gravity_forces"),
    Check("sensitivities", slopes.sensitivities, DIFFERENCES, DYNAMICS),
    Check("derivatives of inverse dynamics", slopes.inverse_recursion, DIFFERENCES, DYNAMICS),
    Check("derivatives of forward dynamics", slopes.forward_recursion, DIFFERENCES, DYNAMICS),
    Check("loops close", closure.loops_close, DIFFERENCES, loops=True),
    Check("constrained motion", closure.constrained_motion, ROUNDING, DYNAMICS, loops=True),
    Check("independent coordinates", closure.freedoms, ROUNDING, DYNAMICS, loops=True),
    Check("loop closure residual", closure.health, ROUNDING, DYNAMICS, loops=True),
    Check("decay of loop errors", closure.errors_decay, ROUNDING, DYNAMICS, loops=True),
    Check("loop joints", closure.loop_joints, ROUNDING, DYNAMICS, loops=True),
    Check("compiled programs vs. floats", agreement.programs, ROUNDING, compiled=True),
    Check("numpy vs. interpret", agreement.by("numpy"), ROUNDING, compiled=True),
    Check("llvm vs. interpret", agreement.by("llvm"), ROUNDING, compiled=True),
    Check("llvm: single state vs. batch", agreement.alone_as_in_a_batch, 0.0, compiled=True),
    Check("llvm in single precision", agreement.in_float32, SINGLE, compiled=True, full=True),
    Check("derived programs", agreement.derived_programs, DIFFERENCES, compiled=True, full=True),
)
"""All checks, in the order in which they run."""


@dataclass(frozen=True)
class Result:
    """The largest error of one check for one function and method, over all states.

    `error` is relative to the largest expected entry, and infinite if there is no valid result.
    `seed` is the seed of the random state. `detail` describes the first entry that differs, the
    error that was raised, or the reason why the check was skipped.
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
        """Return True if the tolerance is small enough for a meaningful check."""
        return self.tolerance <= WIDEST

    @property
    def ok(self) -> bool:
        """Return True if the error is within the tolerance.

        If the tolerance is too large for a meaningful check, the error need only be finite.
        """
        return self.error <= self.tolerance or (not self.checked and math.isfinite(self.error))

    def __str__(self) -> str:
        what = f"{self.check}: {self.function}, {self.method}: error {self.error:.1e}"
        where = f"(tolerance {self.tolerance:.0e}, seed {self.seed})"
        return shown(f"{what} {where} {self.detail}".rstrip())


@dataclass(frozen=True)
class Verification:
    """The largest error for each combination of check, function and method.

    `left_out` lists functions that were not checked, with the reasons.
    """

    robot: str
    results: tuple[Result, ...]
    full: bool = False
    left_out: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Return True if all checks pass."""
        return all(result.ok for result in self.results)

    @property
    def failures(self) -> tuple[Result, ...]:
        """Results of the checks that failed."""
        return tuple(result for result in self.results if not result.ok)

    @property
    def unchecked(self) -> tuple[Result, ...]:
        """Results that cannot be checked because of accuracy loss. `detail` gives the reason."""
        return tuple(result for result in self.results if not result.checked)

    @property
    def worst(self) -> dict[str, Result]:
        """Result with the largest ratio of error to tolerance, for each check."""
        return _worst(self.results, lambda result: result.check)

    def __repr__(self) -> str:
        count, failed = len(self.results), len(self.failures)
        return f"<Verification of {shown(repr(self.robot))}: {count} comparisons, {failed} differ>"

    def __str__(self) -> str:
        lines = [str(result) for result in self.failures]
        checked = f"{self.robot}: {len(self.results)} comparisons, {len(lines)} differ"
        unchecked = [f"unchecked: {line}" for line in (*self.left_out, *reasons(self.unchecked))]
        return "\n".join(map(shown, [checked, *lines, *unchecked]))


def reasons(unchecked: Sequence[Result]) -> list[str]:
    """Return a line for each reason why checks were impossible, with the unchecked functions."""
    by: dict[str, dict[str, None]] = {}
    for result in unchecked:
        by.setdefault(result.detail, {})[f"{result.function}, {result.method}"] = None
    return [f"{'; '.join(names)}: {why}" for why, names in by.items()]


def _rank(result: Result) -> tuple[bool, float]:
    """Return a sort key that increases with the ratio of error to tolerance.

    Results that could not be checked come first.
    """
    share = result.error / result.tolerance if result.tolerance else result.error * 1e300
    return result.checked, share


def _worst(results: Iterable[Result], key: Callable[[Result], Any]) -> dict[Any, Result]:
    """Return, for each value of `key`, the result with the largest ratio of error to tolerance."""
    found: dict[Any, Result] = {}
    for result in results:
        other = found.get(key(result))
        if other is None or _rank(result) > _rank(other):
            found[key(result)] = result
    return found


def verify(
    robot: Robot,
    *,
    seed: int = 0,
    states: int = STATES,
    full: bool = False,
    step: Callable[[str], None] = lambda name: None,
) -> Verification:
    """Check a robot's functions against each other and against physics, at random states.

    The checks compare methods with each other, compiled code with interpreted code, energy with
    power, and derivatives with finite differences. For robots with loops, further checks verify
    that the loops stay closed.

    Parameters
    ----------
    robot : Robot
        The robot.
    seed : int, optional
        Seed of the first state; the seed increases by 1 for each further state.
    states : int, optional
        Number of random states.
    full : bool, optional
        Also check costly methods for robots with more than 12 degrees of freedom, every compiled
        function, single precision and derivative programs.
    step : callable, optional
        Progress callback, called with the name of each check before it runs.

    Returns
    -------
    Verification
        Largest error of every check; `.ok` is True if all checks pass.

    Raises
    ------
    ArgumentError
        If `robot` is not a Robot.
    InputError
        If `seed` is not a non-negative integer, if `states` is not a positive integer, or if no
        configuration is found in which the loops are closed.

    Examples
    --------
    >>> import chasles
    >>> chasles.verify(chasles.robots.planar(1), states=1).ok
    True
    """
    check_robot("verify", robot)
    seed, states = (_count(name, x) for name, x in (("seed", seed), ("states", states)))
    if states == 0:
        raise InputError("E-VERIFY-002", "`states` must be at least 1", part="verify")
    trials = [trial(robot, seed + k, full=full) for k in range(states)]
    every = results(trials, seed, checks(full=full), step=step)
    found = _worst(every, lambda result: (result.check, result.function, result.method))
    return Verification(str(robot.name), tuple(found.values()), full, left_out(trials[0]))


def left_out(at: Trial) -> tuple[str, ...]:
    """Return the functions that are not checked, with the reasons."""
    if at.model.source.massless:
        return ("dynamics: no masses are given, so only kinematics was checked",)
    if at.model.nv > ARM and not at.full:
        return (
            f"closed forms: checked for at most {ARM} degrees of freedom; use full=True for more",
        )
    return ()


def checks(*, full: bool = False, compiled: bool = True) -> list[Check]:
    """Return the checks to run.

    `full=True` adds the costly checks, and `compiled=False` omits checks that compile programs.
    """
    return [c for c in CHECKS if (full or not c.full) and (compiled or not c.compiled)]


def results(
    trials: Sequence[Trial],
    seed: int,
    chosen: Sequence[Check],
    *,
    step: Callable[[str], None] = lambda name: None,
) -> Iterator[Result]:
    """Run the checks at every state and yield their results."""
    for check in chosen:
        step(check.name)
        for k, at in enumerate(trials):
            if not check.suits(at):
                continue
            try:
                for compared in check.compare(at):
                    yield _judged(check, compared, seed + k)
            except Raised as error:
                failed = (math.inf, check.tolerance, seed + k, str(error))
                yield Result(check.name, error.function, error.method, *failed)


def _judged(check: Check, compared: Comparison, seed: int) -> Result:
    error, tolerance = relative_error(compared), check.tolerance * compared.loss.times
    result = Result(check.name, compared.function, compared.method, error, tolerance, seed)
    if not result.checked:
        return replace(result, detail=compared.loss.why)
    return result if result.ok else replace(result, detail=first_difference(compared, tolerance))


def _count(name: str, value: object) -> int:
    try:
        count = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        count = -1
    if count < 0 or isinstance(value, bool):
        problem = f"{name} must be a non-negative integer, not {value!r}"
        raise InputError("E-VERIFY-003", problem, part="verify")
    return count
