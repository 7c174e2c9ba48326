"""Configuration space of a robot: positions by name, random positions, closed loops."""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from numbers import Real
from typing import Any, Literal

import numpy as np

from chasles.backends.arrays import checked_count
from chasles.entry_points import entry_point
from chasles.errors import ArgumentError, InputError
from chasles.functions.doors import from_names, leading_shape, numbers
from chasles.mechanisms import Mobility, assemble, mobility
from chasles.mechanisms.differentiable import array_library, differentiable
from chasles.mechanisms.grouping import solved_in_groups, varied
from chasles.mechanisms.inverse_kinematics import Solution, inverse_kinematics
from chasles.mechanisms.placing import placeable, placed_weights
from chasles.mechanisms.postures import COUNT, SEED, TRIES, Bounds
from chasles.mechanisms.quick import Quick
from chasles.mechanisms.resident import on_gpu, resident
from chasles.model.given import a_generator, some_numbers
from chasles.model.spaces import rate_places
from chasles.names import suggest
from chasles.robot.functions import Computing
from chasles.robot.identity import Array
from chasles.robot.machine import start


class Configuring(Computing):
    """Robot methods for configurations, mobility, closed loops and inverse kinematics."""

    def neutral(self, *, within: bool = False) -> np.ndarray:
        """Return the initial configuration defined in the robot's file.

        Parameters
        ----------
        within : bool, optional
            Move each coordinate to the nearest position within its limits, then close the loops.

        Returns
        -------
        q : ndarray, shape (nq,)
            Configuration (rad or m), called qpos0 in MuJoCo. A joint without an initial position is
            at its zero position, where its two frames coincide. Without `within`, the configuration
            may violate joint limits.

        Raises
        ------
        ImpossiblePosition
            If `within` is True, and the loops cannot be closed with the independent coordinates
            within their limits.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.planar(2).neutral()
        array([0., 0.])
        """
        q = start(self.model)
        if not within:
            return q
        inside = self.clip(q)
        if np.array_equal(inside, q) or not self.loops:
            return inside
        places = dict(rate_places(self.model))
        free = self.mechanism.loops.positions.independent
        y = [inside[places[k]] if k in places else 0.0 for k in free]
        return assemble(self.mechanism.closing.positions, y, inside)

    def clip(self, q: Array) -> np.ndarray:
        """Clip each coordinate of q to its limits.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions (rad or m).

        Returns
        -------
        q : ndarray, shape (..., nq)
            Positions within the limits. Coordinates without limits, such as those of free and
            spherical joints, are unchanged. The loops may be open in the result; `assemble` closes
            them.

        Raises
        ------
        InputError
            If `q` does not have nq entries along its last axis.
        ArgumentError
            If `q` is not an array of real numbers.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.puma560()
        >>> robot.within(robot.clip([9.0, 9.0, 9.0, 9.0, 9.0, 9.0]))
        np.True_
        """
        given = numbers("clip: q", q, self.nq)
        return np.clip(given, self.limits.lower, self.limits.upper)

    def within(self, q: Array, *, tolerance: float = 0.0) -> np.ndarray:
        """Return True for each configuration that is within the joint limits.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions (rad or m).
        tolerance : float, optional
            Distance (rad or m) by which a coordinate may exceed its limits.

        Returns
        -------
        inside : ndarray of bool, shape (...)
            False if a coordinate is NaN or outside its limits.

        Raises
        ------
        InputError
            If `q` does not have nq entries along its last axis, or if `tolerance` is negative.
        ArgumentError
            If `q` is not an array of real numbers.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.puma560().within([9.0, 0.0, 0.0, 0.0, 0.0, 0.0])
        np.False_
        """
        if not isinstance(tolerance, Real) or isinstance(tolerance, bool) or not tolerance >= 0.0:
            problem = f"`tolerance` must be a non-negative number, not {tolerance!r}"
            raise InputError("E-ROBOT-050", problem, part="within")
        given = numbers("within: q", q, self.nq)
        inside = (given >= self.limits.lower - tolerance) & (given <= self.limits.upper + tolerance)
        return np.asarray(inside.all(axis=-1))[()]

    def state(self, values: Mapping[str, Array], *, default: Array = None) -> np.ndarray:
        """Return the configuration with the given joint positions.

        Parameters
        ----------
        values : mapping from str to array_like
            Positions (rad or m) by joint name. Leading dimensions broadcast.
        default : array_like, shape (..., nq), optional
            Positions of all other joints. Default: `neutral()`.

        Returns
        -------
        q : ndarray, shape (..., nq)
            Configuration. `chasles.conventions.position_by_name` is the inverse.

        Raises
        ------
        ArgumentError
            If `values` is not a mapping.
        ModelError
            If a joint in `values` does not exist.
        InputError
            If an array does not have one entry per coordinate along its last axis.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.planar(2).state({"joint2": 0.5})
        array([0. , 0.5])
        """
        if not isinstance(values, Mapping):
            kind = type(values).__name__
            problem = f"`values` must be a mapping from joint names to positions, not {kind}"
            raise ArgumentError("E-ROBOT-010", problem, part="state")
        q = numbers("default", self.neutral() if default is None else default, self.nq)
        return from_names(values, self.position_slice, q)

    def random(
        self,
        rng: "np.random.Generator | int | None" = None,
        size: int | tuple[int, ...] | None = None,
        *,
        seed: int | None = None,
    ) -> np.ndarray:
        """Return random configurations, uniformly distributed between the joint limits.

        Parameters
        ----------
        rng : numpy.random.Generator or int, optional
            Generator, or a seed if `size` is given. A seed without `size` raises an error, because
            it may be a batch shape.
        size : int or tuple of int, optional
            Batch shape. Default: a single configuration.
        seed : int, optional
            Seed for a new generator. `seed` and `rng` cannot both be given.

        Returns
        -------
        q : ndarray, shape (*size, nq)
            Configurations. Without limits, angles are in [-pi, pi] and positions in [-1, 1] m. With
            only one limit, values are within 2 pi rad or 2 m of it, on the allowed side.
            Orientations are uniformly distributed. Loops are not closed; use `assemble` to close
            them.

        Raises
        ------
        InputError
            If `rng` is ambiguous (a seed or a batch size), if both `rng` and `seed` are given, if
            `rng` or `seed` is not valid, or if `size` is not a non-negative integer or a tuple of
            such integers.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.planar(2).random(size=5, seed=0).shape
        (5, 2)
        """
        if isinstance(rng, int | np.integer | tuple | list | np.ndarray) and size is None:
            given = f"{rng!r:.60}" if isinstance(rng, np.ndarray) else f"{rng!s:.60}"
            problem = f"random({given}) is ambiguous: {given} may be a seed or a batch size"
            remedy = f"write random(seed={given}) or random(size={given})"
            raise InputError("E-ROBOT-063", problem, remedy)
        if rng is not None and seed is not None:
            raise InputError("E-ROBOT-064", "`rng` and `seed` cannot both be given", part="random")
        rng = a_generator(rng if seed is None else seed, "random")
        sizes = size if isinstance(size, tuple | list) else () if size is None else (size,)
        shape = tuple(checked_count("random: size", n, least=0) for n in sizes)
        q = np.empty((*shape, self.nq))
        for i, where in self.model.position_slices.items():
            body = self.model.bodies[i]
            for k, unit in zip(range(where.start, where.stop), body.joint.units, strict=True):
                span = {"rad": np.pi, "m": 1.0, "1": 0.0}[unit]
                low, high = _interval(self.limits.lower[k], self.limits.upper[k], span)
                q[..., k] = rng.uniform(low, high, shape) if unit != "1" else rng.normal(size=shape)
            if "1" in body.joint.units:
                turn = q[..., where.start : where.start + 4]
                turn /= np.linalg.norm(turn, axis=-1, keepdims=True)
        return q

    def mobility(self, q: Array = None, *, tolerance: float = 1e-9) -> Mobility:
        """Return the number of degrees of freedom of the robot with its loops closed.

        Parameters
        ----------
        q : array_like, shape (nq,), optional
            Closed configuration (rad or m). Default: a generic closed configuration.
        tolerance : float, optional
            Residual above which a loop counts as open, in rad for angles and relative to the loop
            size for lengths.

        Returns
        -------
        Mobility
            The number of degrees of freedom, an integer that prints as a report. The report lists
            the rank of `loop_matrix`, the number of redundant equations of each loop, the rank
            tolerance, degrees of freedom that the loops lock, and, for loops with redundant
            equations, joint types that allow the same motion with fewer equations.

        Raises
        ------
        InputError
            If `q` does not have shape (nq,), or if the robot is evaluated at several times.
        OpenLoop
            If the loops are not closed in configuration q.
        ArgumentError
            If `q` is not numeric.

        Examples
        --------
        >>> import chasles
        >>> int(chasles.robots.four_bar().mobility())
        1
        """
        mechanism = self.mechanism
        return mobility(mechanism.loops if q is None else mechanism.closing, q, tolerance)

    def assemble(self, y: Array | Mapping[str, Array], guess: Array = None) -> np.ndarray:
        """Close the loops for given independent coordinates.

        Parameters
        ----------
        y : array_like, shape (..., n), or mapping from str to array_like
            Values of the `independent_positions` (rad or m), in their order or by name. For planar,
            spherical and free joints, the values are displacements from the guess.
        guess : array_like, shape (..., nq), optional
            Initial guess, which determines the branch of the solution. Default: any branch.

        Returns
        -------
        q : ndarray, shape (..., nq)
            Configuration with closed loops. The relative loop error is at most 1e-13.

        Raises
        ------
        ImpossiblePosition
            If the loops cannot be closed.
        SingularPosition
            If y does not determine q.
        InputError
            If `y` has the wrong shape, or is not finite.
        ArgumentError
            If `y` is not numeric.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.four_bar().assemble([0.3]).round(3)
        array([0.3  , 0.544, 1.813])
        """
        if isinstance(y, Mapping):
            y = _in_order(y, self.independent_positions)
        return assemble(self.mechanism.closing.positions, y, guess)

    def complete(self, q: Array, yd: Array, ydd: Array = None, *, tolerance: float = 1e-9) -> Any:
        """Return the joint velocities for given velocities of the independent coordinates.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Configuration (rad or m) in which the loops are closed.
        yd : array_like, shape (..., n)
            Velocities of the `independent` coordinates (rad/s or m/s).
        ydd : array_like, shape (..., n), optional
            Accelerations of the `independent` coordinates (rad/s2 or m/s2).
        tolerance : float, optional
            Residual above which a loop counts as open, as in `mobility`.

        Returns
        -------
        qd : ndarray, shape (..., nv)
            Joint velocities (rad/s or m/s).
        qdd : ndarray, shape (..., nv)
            Joint accelerations (rad/s2 or m/s2), only if `ydd` is given.

        Raises
        ------
        OpenLoop
            If the loops are not closed in configuration q.
        SingularPosition
            If yd does not determine qd.
        InputError
            If an array has the wrong shape.
        ArgumentError
            If an argument is not numeric.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.four_bar()
        >>> robot.complete(robot.assemble([0.3]), [1.0]).round(3)
        array([ 1.   , -1.346, -0.209])
        """
        return self.mechanism.closing.complete(q, yd, ydd, tolerance)

    @cached_property
    def _quick(self) -> Quick:
        """Cache of data that `inverse_kinematics` prepares for repeated calls."""
        return Quick()

    def inverse_kinematics(
        self,
        targets: Mapping[str, Any] | Array,
        *,
        avoid: Any = None,
        guess: Array = None,
        near: Array = None,
        fixed: Sequence[str] | str = (),
        solutions: Literal["first", "all"] = "first",
        count: int = COUNT,
        comfort: Array = None,
        comfort_weight: Array = None,
        wraps: bool = False,
        seed: int = SEED,
        tries: int = TRIES,
        threads: int | None = None,
    ) -> Solution:
        """Find configurations within the joint limits in which frames reach their targets.

        Parameters
        ----------
        targets : mapping from str to target, or target
            Mapping from frames to targets. A target is a pose (..., 4, 4) in the world, an object
            from `chasles.targets` (`Pose`, `Position`, `Orientation`, `Axis`, `LookAt`,
            `Relative`), or a list of such objects. The key "center of mass" requires a
            `CenterOfMass`. Leading axes are batch axes and broadcast. A target passed instead of
            a mapping applies to `robot.tool`.
        avoid : mapping from str to shape, or Avoid, optional
            Mapping from obstacle names to shapes, or `chasles.distances.Avoid`. Solutions avoid
            self-collisions and collisions with the obstacles.
        guess : array_like, shape (..., nq), optional
            Configuration at which the first search starts, clipped to the limits. The
            guess also defines the positions of the joints in `fixed`.
        near : array_like, shape (..., nq), optional
            Configuration, which may be outside the limits. Of all solutions found, the
            nearest to this configuration is returned.
        fixed : str or sequence of str, optional
            Names of joints that keep their position in the guess. Without a guess, they keep their
            position in `near` or, without either, in the neutral configuration.
        solutions : {"first", "all"}, optional
            "first" for one solution per problem, "all" for all distinct solutions.
        count : int, optional
            Maximum number of solutions per problem with `solutions="all"`.
        comfort : array_like, shape (..., nq), or "limits", optional
            Preferred configuration, or "limits" for the midpoints of the joint limits.
            For a redundant robot, the solution is as close to this configuration as the targets
            allow.
        comfort_weight : array_like, shape (nv,), optional
            Weights of the squared distances from `comfort`.
        wraps : bool, optional
            With `solutions="all"`, include solutions that differ by full turns of joints.
        seed : int, optional
            Seed for the initial configurations. Default: 0.
        tries : int, optional
            Maximum number of initial configurations per problem.
        threads : int, optional
            Number of threads. Default: all for large batches.

        Returns
        -------
        Solution
            `q`, `solved`, `residual`, `iterations`, `limits` and `complete`. If no solution was
            found, `solved` is False and q is the configuration with the smallest error.

        Raises
        ------
        ModelError
            If a frame or a joint does not exist.
        InputError
            If a target is not valid, if an array has the wrong shape, if `targets` and `guess` do
            not broadcast, or if an option is out of range.
        ArgumentError
            If an argument has the wrong type, or if an option is not supported with arrays on a GPU
            or with recorded derivatives.

        Notes
        -----
        The solver takes damped Gauss-Newton steps on the configuration space (Sugihara, IEEE
        Transactions on Robotics 27, 2011), with an active set of joint limits. The starting
        configurations are distributed within the limits, and those nearest to the targets are tried
        first. The result of a problem is bitwise identical whether it is solved alone or in a
        batch, with any number of threads. For a robot with loops, the target and loop equations are
        solved together.

        For arms with six joints, if three consecutive axes intersect or are parallel, all solutions
        are found in closed form (Pieper 1968; Elias and Wen 2022). For arms with seven joints,
        such solutions are computed for sampled positions of one joint. For other arms, only the
        solutions reached from the starting configurations are found. Without a guess, the search
        for one pose starts at a closed-form solution, if there is one. A rolling sphere may be
        placed anywhere on its plane, because some rolling path leads there.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.puma560()
        >>> T = robot.forward_kinematics([0.3, 0.5, -1.0, 0.2, 0.9, -0.4], frame="tool")
        >>> found = robot.inverse_kinematics({"tool": T})
        >>> bool(found.solved), bool(found.residual.max() < 1e-6)
        (True, True)
        """
        targets = targets if isinstance(targets, Mapping) else {self.tool: targets}
        if avoid is not None:
            targets = entry_point("with_clearance")(self, targets, avoid)
        library, quick = array_library(targets), None
        usual = comfort is comfort_weight is near is threads is None and fixed == ()
        usual = usual and library is None and count is COUNT
        if usual and solutions == "first" and not wraps and seed is SEED and tries is TRIES:
            quick = self._quick
            found = quick(targets, guess)
            if found is not None:
                return found
        bounds = Bounds(self.limits.lower, self.limits.upper)
        options: dict[str, Any] = {"guess": guess, "near": near, "fixed": fixed, "count": count}
        options |= {"solutions": solutions, "seed": seed, "tries": tries, "threads": threads}
        ease = placed_weights(self.mechanism, comfort_weight)
        options |= {"comfort": comfort, "comfort_weight": ease, "wraps": wraps}
        mechanism = placeable(self.mechanism)
        if library is not None and on_gpu(targets, library, options):
            return resident(mechanism, bounds, targets, **options)
        if library is not None:
            return differentiable(mechanism, bounds, targets, library, **options)
        if varied(targets):
            return solved_in_groups(mechanism, bounds, targets, options)
        return inverse_kinematics(mechanism, bounds, targets, quick=quick, **options)


def _interval(lower: float, upper: float, span: float) -> tuple[float, float]:
    """Return the joint range; if a limit is infinite, return a range of length 2 * span."""
    if math.isfinite(lower):
        return lower, upper if math.isfinite(upper) else lower + 2.0 * span
    return (upper - 2.0 * span, upper) if math.isfinite(upper) else (-span, span)


def _in_order(values: Mapping[str, Array], names: Sequence[str]) -> np.ndarray:
    """Return the values (..., n) of the independent coordinates, in the order of their names."""
    for name in values:
        if name not in names:
            problem = f"{name!r:.60} is not an independent coordinate of this robot"
            raise InputError("E-LOOP-042", problem, suggest(name, names), part="assemble")
    missing = [name for name in names if name not in values]
    if missing:
        problem = f"no value is given for {', '.join(map(repr, missing))}"
        remedy = "give a value for each name in robot.independent_positions"
        raise InputError("E-LOOP-043", problem, remedy, part="assemble")
    columns = {name: some_numbers(name, values[name], "assemble")[..., None] for name in names}
    lead = leading_shape("assemble", **columns)
    return np.concatenate([np.broadcast_to(x, (*lead, 1)) for x in columns.values()], axis=-1)
