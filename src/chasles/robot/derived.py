"""The configuration space, and functions of functions: derivatives, linear systems, parameters."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from chasles.algorithms import METHODS
from chasles.algorithms.spatial.kinematics import At, Axes
from chasles.backends.arrays import check_tolerance, checked_count
from chasles.errors import ArgumentError, InputError
from chasles.functions import doors, numeric
from chasles.functions.compiled import Compiled
from chasles.functions.graphs import Graph, captured, shapes_of
from chasles.functions.programs import Derivative, spaces
from chasles.functions.tracing import WrenchKey
from chasles.mechanisms import Coordinates, Mobility, assemble, mobility
from chasles.robot.functions import Computing
from chasles.robot.identity import Array


class Deriving(Computing):
    """Positions, and functions that call several others or take any number of arrays."""

    # The configuration space --------------------------------------------------------------------

    def neutral(self) -> np.ndarray:
        """The configuration in which every joint's two frames coincide: (nq,)."""
        return self.mechanism.neutral()

    def state(self, values: Mapping[str, Array], *, default: Array = None) -> np.ndarray:
        """q (..., nq) from {joint: position}, shapes broadcast together.

        Joints that are not named are as in `default` (neutral if omitted). The parts of any array
        by joint name: `chasles.conventions.position_by_name` and `velocity_by_name`.
        """
        if not isinstance(values, Mapping):
            problem = f"give {{joint: position}}, not {type(values).__name__}"
            raise ArgumentError("E-ROBOT-010", problem, part="state")
        q = doors.numbers("default", self.neutral() if default is None else default, self.nq)
        return doors.from_names(values, self.position_slice, q)

    def random(
        self, rng: "np.random.Generator | int | None" = None, size: int | tuple[int, ...] = ()
    ) -> np.ndarray:
        """Random configurations (*size, nq): uniform between limits where a joint has them.

        Without limits, angles lie in [-pi, pi], positions in [-1, 1] m; orientations are uniform.
        They leave loops open: `assemble` takes one as a guess, and closes them.
        """
        rng = np.random.default_rng(rng)
        shape = (size,) if isinstance(size, int) else tuple(size)
        q = np.empty((*shape, self.nq))
        for i, where in self.model.position_slices.items():
            body = self.model.bodies[i]
            for k, unit in zip(range(where.start, where.stop), body.joint.units, strict=True):
                span = {"rad": np.pi, "m": 1.0, "1": 0.0}[unit]
                low, high = body.data.limits.lower, body.data.limits.upper
                bounded = body.joint.nq == 1 and np.isfinite(low) and np.isfinite(high)
                low, high = (low, high) if bounded and low <= high else (-span, span)
                q[..., k] = rng.uniform(low, high, shape) if unit != "1" else rng.normal(size=shape)
            if "1" in body.joint.units:
                turn = q[..., where.start : where.start + 4]
                turn /= np.linalg.norm(turn, axis=-1, keepdims=True)
        return q

    def mobility(self, q: Array = None, *, tolerance: float = 1e-9) -> Mobility:
        """The freedoms that loops leave at a closed q (nq,), counted by the rank of `loop_matrix`.

        The result is their number (`robot.mobility() == 1`), which prints as a report: rank,
        redundant equations of each loop, the tolerance, freedoms that cannot move while others do,
        and, where a loop has redundant equations, a joint type in its place that has fewer and
        leaves the motion as it is. Without q, at a closed position in which nothing is special.
        tolerance: the residual above which q counts as open (rad, and parts of the loop's size).
        """
        mechanism = self.mechanism
        return mobility(mechanism.loops if q is None else mechanism.closing, q, tolerance)

    def assemble(self, y: Array, guess: Array = None) -> np.ndarray:
        """The q (..., nq) that closes the loops, with the `independent` freedoms at y (..., n).

        guess (..., nq): where the search for the dependent coordinates starts, which decides the
        branch; without it, any branch. y has the coordinates themselves, or, for freedoms of
        planar, spherical and free joints, how far to move from the guess along them. Newton's
        method, damped, to 1e-13 of the loop's size. Raises `chasles.ImpossiblePosition` where the
        loops stay open, `chasles.SingularPosition` where y does not determine q.
        """
        return assemble(self.mechanism.closing, y, guess)

    def complete(self, q: Array, yd: Array, ydd: Array = None, *, tolerance: float = 1e-9) -> Any:
        """All rates qd (..., nv) from those of the `independent` freedoms, at a closed q.

        With ydd, the tuple (qd, qdd) of rates and accelerations. tolerance as in `mobility`; raises
        `chasles.OpenLoop` where q is not closed, `chasles.SingularPosition` where yd does not
        determine qd.
        """
        return self.mechanism.closing.complete(q, yd, ydd, tolerance)

    # Functions of functions ---------------------------------------------------------------------

    def function(
        self,
        function: str,
        *,
        backend: str = "llvm",
        method: str = "fastest",
        dissipation: bool = False,
        wrenches: tuple[WrenchKey, ...] = (),
        derivative: Derivative | None = None,
        parameters: Sequence[str] = (),
        dtype: str = "float64",
        **options: Any,
    ) -> Compiled:
        """The compiled function with these options, made once; not one that would open loops."""
        options |= {"backend": backend, "method": method, "dissipation": dissipation}
        options |= {"wrenches": wrenches, "derivative": derivative}
        options |= {"parameters": parameters, "dtype": dtype}
        return self.mechanism.function(function, **options)

    def graph(
        self,
        function: str | Callable[..., Any],
        batch: int | tuple[int, ...] = (),
        *,
        library: Literal["cupy", "torch"] = "cupy",
        dtype: str = "float64",
        device: int | None = None,
        shapes: Mapping[str, tuple[int, ...]] | None = None,
        **options: Any,
    ) -> Graph:
        """Capture a function for a batch in a CUDA graph, whose launch costs a few microseconds.

        Parameters
        ----------
        function
            The name of a function, or a Python function of arrays that calls functions of robots
            and of the library. Its arguments are called q, qd, qdd, tau, or have `shapes`.
        batch
            The number of states, or the leading shape of all arrays.
        library
            "cupy" or "torch": whose arrays, memory and stream.
        dtype
            "float64" or "float32".
        device
            The number of the GPU; by default the library's current one.
        shapes
            Shapes of further arguments of a Python function, for one state.
        options
            Those of the named function, e.g. frame="hand".

        Returns
        -------
        Graph
            `inputs`, by name: write to them in place. Called without arguments it launches on the
            library's current stream and returns `outputs`, which every launch overwrites; arrays
            that it is called with are copied to the inputs first.
        """
        lead = batch if isinstance(batch, tuple) else (batch,)
        lead = tuple(checked_count("graph: batch", size) for size in lead)
        if dtype not in ("float64", "float32"):
            problem = f"dtype must be 'float64' or 'float32', not {dtype!r}"
            raise InputError("E-GPU-028", problem, part="graph")
        if isinstance(function, str):
            if shapes is not None:
                problem = f"shapes= is for Python functions, not for {function!r}"
                raise ArgumentError("E-GPU-029", problem, "leave it out", part="graph")
            self.mechanism.refuse_open("graph", function)
            run: Callable[..., Any] = self.function(function, **options)
            known = {v.name: v.shape for v in run.interface.inputs}  # type: ignore[attr-defined]
        else:
            if options:
                problem = f"options ({', '.join(options)}) are for functions given by name"
                raise ArgumentError("E-GPU-030", problem, "call it with them inside", part="graph")
            usual = {"q": (self.nq,), **dict.fromkeys(("qd", "qdd", "tau"), (self.nv,))}
            run, known = function, shapes_of(function, usual, shapes or {})
        values = {name: np.zeros(lead + shape, dtype) for name, shape in known.items()}
        for name in ("q", "q0", "q1"):  # of all names, those of configurations
            if known.get(name) == (self.nq,):
                values[name][...] = self.neutral()
        return captured(run, values, library, device)

    def derivatives(
        self,
        function: str,
        *arguments: Array,
        wrt: str | Sequence[str] | None = None,
        order: int = 1,
        f_ext: Mapping[str, Any] | None = None,
        dissipation: bool = False,
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
        **options: Any,
    ) -> Any:
        """Exact derivatives of one of this robot's functions, e.g. "inverse_dynamics".

        wrt: the name of an argument ("q", "qd", ...), giving an array; or several (by default all),
        giving a tuple in that order. Each has the shape of the function's result followed by that
        of the argument; with respect to q it is the derivative of f(integrate(q, d)) at d = 0, and
        has nv columns. order=2 gives second derivatives: for each pair of arguments, the first
        derivatives' shape followed by the second argument's.
        """
        options = doors.order_option(function, arguments) | options
        key = ("derivatives", (function, wrt, order, dissipation, method, *options.items()))
        plain = f_ext is None and out is None and threads is None
        ready = self.mechanism.found(key) if plain else None
        if ready is not None:
            return ready(*arguments)
        if order not in (1, 2):
            raise InputError("E-ROBOT-022", f"order is 1 or 2, not {order!r}", part="derivatives")
        options |= {"dissipation": dissipation, "method": method}
        here, forces = self.mechanism.derived("jacobian", function, wrt, order, f_ext, **options)
        if plain:
            return self.mechanism.keep(key, here)(*arguments)
        return here(*arguments, *forces, out=out, threads=threads)

    def pullback(
        self,
        function: str,
        *arguments: Array,
        covector: Array,
        wrt: str | Sequence[str] | None = None,
        f_ext: Mapping[str, Any] | None = None,
        dissipation: bool = False,
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
        **options: Any,
    ) -> Any:
        """A covector of a function's result, pulled back to its arguments (reverse mode).

        The product of the transposed `derivatives` with `covector` (an array of the result's
        shape), at a small multiple of the function's own cost; wrt as in `derivatives`.
        """
        options = doors.order_option(function, arguments) | options
        options |= {"dissipation": dissipation, "method": method}
        here, forces = self.mechanism.derived("pullback", function, wrt, f_ext=f_ext, **options)
        return here(*arguments, *forces, covector, out=out, threads=threads)

    def frame_motion(
        self,
        q: Array,
        *rates: Array,
        frame: str,
        axes: Axes = "world",
        at: At = "frame",
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
        **named_rates: Array,
    ) -> np.ndarray:
        """Velocity, acceleration, jerk and so on of a frame: (..., order, 6).

        rates: qd, qdd, qddd, ..., in this order or by these names: the order is how many are given.
        Row k is the k-th derivative of the position of the body's point at `at` (last three,
        m/s^k), and the derivative of its body's angular velocity of the same order (first three,
        rad/s^k): rows 0 and 1 are `frame_velocity` and the classical `frame_acceleration`. `at` as
        in `frame_velocity`: the point moves with the body. axes="frame" gives the components of the
        same derivatives along the frame's axes. method: "joint-motion" (Mitra, in the base frame),
        "link-frames" (the same in the links' frames), or "fastest".
        """
        rates += doors.rates_by_name("frame_motion", rates, named_rates)
        order = doors.order_of("frame_motion", rates)
        view = ("frame", frame, "axes", axes, "at", at, "order", order, "method", method)
        return self._call("frame_motion", (q, *rates), view, None, out, threads)

    def jacobian_rate(
        self,
        q: Array,
        qd: Array,
        qdd: Array = None,
        *,
        frame: str,
        axes: Axes = "world",
        at: At = "frame",
        order: int = 1,
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """The time derivative of the entries of `jacobian` along the motion: (..., 6, nv).

        order=2 is the second derivative, which needs qdd. method: "spatial" (Featherstone 2008,
        example 2.5; first order), "joint-motion" (Mitra, 2.9), or "fastest".
        """
        arrays = _rates_of_order("jacobian_rate", order, q, qd, qdd)
        view = ("frame", frame, "axes", axes, "at", at, "order", order, "method", method)
        return self._call("jacobian_rate", arrays, view, None, out, threads)

    def linearize(
        self,
        q: Array,
        qd: Array,
        tau: Array,
        *,
        dt: float | None = None,
        actuation: Array | Sequence[str] | None = None,
        coordinates: Coordinates = "independent",
        f_ext: Mapping[str, Any] | None = None,
        dissipation: bool = False,
        out: tuple[Array, Array] | None = None,
        threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """A (..., 2nv, 2nv) and B (..., 2nv, m) of xdot = A x + B u near a state.

        x = (d, change of qd), where d is the step along `integrate` from the motion that passes
        through the state: A = [[-ad(qd), 1], [d qdd/dq, d qdd/dqd]], with ad zero for joints whose
        steps add; B = [0; M^-1 S] and u the change of the inputs, joint forces being S u.
        actuation: S, an array (nv, m), or the names of the joints that are driven; all by default.
        dt: the pair of discrete time instead, x(t + dt) = A x + B u, exact for an input that is
        constant over dt seconds. Balafoutis and Patel 1991, Eq 7.2.3.

        Of a robot with loops x is the step and the change of velocity of its n `independent`
        freedoms, with all others along, A (..., 2n, 2n) and B (..., 2n, m); coordinates="tree"
        leaves the loops open instead. q must be closed and qd keep it so (`complete`); raises
        `chasles.OpenLoop` and `chasles.SingularPosition`.

        f_ext and dissipation as in `forward_dynamics`. The six numbers of a wrench stay fixed,
        along the axes and about the point it is given with: axes="world" keeps its direction in
        space, axes="frame" turns it with the frame; at="frame" or (x, y, z) carries its point
        along, at="world" leaves it at the world's origin.
        """
        options = ("coordinates", coordinates, "dissipation", dissipation)
        pair = partial(self._call, "linearize", (q, qd, tau), options, f_ext)
        if dt is None and actuation is None:
            return pair(out, threads)
        doors.refuse("linearize with dt= or actuation=", q, qd, tau)
        step = None if dt is None else numeric.checked_step(dt)
        S = None
        if actuation is not None:
            S = numeric.actuation_matrix(actuation, self.nv, self.velocity_slice)
        A, B = pair(None, threads)
        if S is not None:
            B = B @ S.astype(B.dtype)
        if step is not None:
            A, B = numeric.discretized(A, B, step)
        return numeric.delivered("linearize", (A, B), out)

    def packed_entries(self, function: str) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the entries that a function gives with `packed=True`.

        Of "mass_matrix" they are those of the lower triangle, row by row; of "ltdl_factors" (its L)
        and "ltl_factor", those of joints on one branch of the tree. Other entries are zero, or
        follow from symmetry:

        >>> import chasles, numpy as np
        >>> robot = chasles.robots.quadruped()
        >>> q = robot.random(0)
        >>> L = np.zeros((robot.nv, robot.nv))
        >>> L[robot.packed_entries("ltl_factor")] = robot.ltl_factor(q, packed=True)
        >>> bool(np.allclose(L.T @ L, robot.mass_matrix(q)))
        True
        """
        packs = [name for name in METHODS if "packed" in spaces(name).options]
        if function not in packs:
            problem = f"{function!r} has no packed form"
            raise InputError("E-CALL-097", problem, f"ask for {', '.join(packs)}")
        matrix, *_ = spaces(function).outputs
        rows, columns = np.array(matrix.packed(self.model)).reshape(-1, 2).T
        return rows, columns

    def inertial_parameters(self) -> np.ndarray:
        """Ten numbers for each of `moving_joints`, flat: what `regressor` is multiplied by.

        Of everything that the joint's child link carries rigidly, in that link's frame: mass (kg),
        first moment (3, kg m), inertia about the frame's origin (xx, yy, zz, xy, xz, yz, kg m2).
        """
        found: list[Any] = []
        for i in self.model.in_file_order:
            body = self.model.bodies[i]
            I = self.model.frames[body.name].placement @ body.inertia
            found += [I.m, *I.h, *I.I]
        return np.array(found, dtype=float)

    def base_parameters(
        self, *, tolerance: float = 1e-8, rng: "np.random.Generator | int | None" = 0
    ) -> numeric.BaseParameters:
        """The fewest combinations of `inertial_parameters` that all joint forces depend on.

        Decided numerically, on regressors of random states with joints anywhere (limits are not
        heeded): QR with column pivoting (Gautier 1991). tolerance: the share of a column that must
        be new for it to be kept; the result says how clear the choice was. Robots that differ in
        size alone keep the same parameters. Of a robot with loops, those of its tree: closed
        motions alone may show fewer.
        """
        check_tolerance("base_parameters", tolerance)
        if not tolerance < 1.0:
            problem = f"tolerance must be in (0, 1), not {tolerance!r}"
            raise InputError("E-ROBOT-020", problem, part="base_parameters")
        count = 20 + 40 * len(self.moving_joints) // max(self.nv, 1)
        steps, qd, qdd = numeric.random_states(self.model, count, np.random.default_rng(rng))
        Y = self.regressor(self.integrate(self.neutral(), steps), qd, qdd)
        return numeric.base_parameters(self.model, Y, tolerance)


def _rates_of_order(
    function: str, order: int, q: Array, qd: Array, qdd: Array
) -> tuple[Array, ...]:
    """The arrays for first or second order: no qdd too few or too many."""
    if isinstance(order, bool) or order not in (1, 2):
        problem = f"order must be 1 or 2, not {order!r}"
        raise InputError("E-ROBOT-025", problem, "chasles.compile takes any order", part=function)
    if order == 2 and qdd is None:
        raise ArgumentError("E-ROBOT-026", "order=2 needs qdd: give q, qd, qdd", part=function)
    if order == 1 and qdd is not None:
        remedy = "leave it out, or ask for order=2"
        raise ArgumentError("E-ROBOT-027", "order=1 takes no qdd", remedy, part=function)
    return (q, qd) if qdd is None else (q, qd, qdd)
