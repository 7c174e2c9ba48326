"""Functions of functions: derivatives, motions of any order, linear systems, parameters."""

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
from chasles.mechanisms import Coordinates
from chasles.model.given import a_generator, a_name
from chasles.robot.configuration import Configuring
from chasles.robot.identity import Array


class Deriving(Configuring):
    """Functions that call several others, or take any number of arrays."""

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
                problem = f"shapes= applies to Python functions, not to {function!r}"
                raise ArgumentError("E-GPU-029", problem, "omit it", part="graph")
            self.mechanism.refuse_open("graph", function)
            run: Callable[..., Any] = self.function(function, **options)
            known = {v.name: v.shape for v in run.interface.inputs}  # type: ignore[attr-defined]
        else:
            if options:
                problem = f"options ({', '.join(options)}) apply only to functions given by name"
                raise ArgumentError(
                    "E-GPU-030", problem, "pass the options inside your function", part="graph"
                )
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
        if type(order) is not int or order not in (1, 2):
            raise InputError(
                "E-ROBOT-022", f"order must be 1 or 2, not {order!r}", part="derivatives"
            )
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
        *rates: Array | str,
        frame: str | None = None,
        axes: Axes = "world",
        at: At = "frame",
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
        **named_rates: Array,
    ) -> np.ndarray:
        """Velocity, acceleration, jerk and so on of a frame: (..., order, 6).

        rates: qd, qdd, qddd, ..., in this order or by these names: the order is how many are given.
        The frame's name may follow them by position.
        Row k is the k-th derivative of the position of the body's point at `at` (last three,
        m/s^k), and the derivative of its body's angular velocity of the same order (first three,
        rad/s^k): rows 0 and 1 are `frame_velocity` and the classical `frame_acceleration`. `at` as
        in `frame_velocity`: the point moves with the body. axes="frame" gives the components of the
        same derivatives along the frame's axes. method: "joint-motion" (Mitra, in the base frame),
        "link-frames" (the same in the links' frames), or "fastest".
        """
        rates, frame = _frame_last("frame_motion", rates, frame)
        rates += doors.rates_by_name("frame_motion", rates, named_rates)
        order = doors.order_of("frame_motion", rates)
        view = ("frame", frame, "axes", axes, "at", at, "order", order, "method", method)
        return self._call("frame_motion", (q, *rates), view, None, out, threads)

    def jacobian_rate(
        self,
        q: Array,
        *rates: Array | str,
        frame: str | None = None,
        axes: Axes = "world",
        at: At = "frame",
        order: int | None = None,
        method: str = "fastest",
        out: Array = None,
        threads: int | None = None,
        **named_rates: Array,
    ) -> np.ndarray:
        """Time derivative of the entries of `jacobian` along the motion: (..., 6, nv).

        rates: qd, qdd, ..., in this order or by these names. n rates give the n-th derivative;
        order, where it is given, says how many there are. method: "spatial" (Featherstone 2008,
        example 2.5; first order), "joint-motion" (Mitra, 2.9), or "fastest".
        """
        rates, frame = _frame_last("jacobian_rate", rates, frame)
        rates += doors.rates_by_name("jacobian_rate", rates, named_rates)
        given = doors.order_of("jacobian_rate", rates)
        if order is not None and doors.checked_order("jacobian_rate", order) != given:
            problem = (
                f"order={order} needs {order} time derivatives after q, but {given} were given"
            )
            raise ArgumentError("E-ROBOT-026", problem, part="jacobian_rate")
        view = ("frame", frame, "axes", axes, "at", at, "order", given, "method", method)
        return self._call("jacobian_rate", (q, *rates), view, None, out, threads)

    def joint_motion_matrices(
        self, q: Array, *rates: Array | str, frame: str | None = None
    ) -> np.ndarray:
        """Mitra's joint-motion property matrices D of a frame's body: (..., nv, 4, 4).

        D of a joint coordinate is the velocity matrix of the body, in the base frame, for a unit
        rate of the coordinate: [e~ r x e; 0 0] for a revolute joint about e through r, [0 e; 0 0]
        for a prismatic one. It is zero for a joint that does not move the body. With rates (qd,
        qdd, ...), the derivative of D by time of as high an order: Ddot = Omega D - D Omega (Eq 3).
        """
        rates, frame = _frame_last("joint_motion_matrices", rates, frame)
        view: dict[str, Any] = {"frame": frame, "at": "world"}
        J = self.jacobian_rate(q, *rates, **view) if rates else self.jacobian(q, **view)
        return numeric.twist_matrices(np.swapaxes(J, -1, -2))

    def motion_matrices(
        self, q: Array, *rates: Array | str, frame: str | None = None
    ) -> np.ndarray:
        """Mitra's motion matrices of a frame's body in the base frame: (..., order, 4, 4).

        They take a point P of the body, in homogeneous coordinates, to the derivatives of its
        position: Omega P its velocity, A_H P its acceleration, J_H P its jerk, and so on (sections
        2.6 and 2.7); each is the derivative of the body's position matrix times its inverse. rates:
        qd, qdd, ...; there is a matrix for each.
        """
        rates, frame = _frame_last("motion_matrices", rates, frame)
        return numeric.motion_matrices(self.frame_motion(q, *rates, frame=frame, at="world"))

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
        if a_name("a function", function, "packed_entries") not in packs:
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
        numbers: list[Any] = []
        for i in self.model.in_file_order:
            body = self.model.bodies[i]
            I = self.model.frames[body.name].placement @ body.inertia
            numbers += [I.m, *I.h, *I.I]
        return np.array(numbers, dtype=float)

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
        rng = a_generator(rng, "base_parameters")
        count = 20 + 40 * len(self.moving_joints) // max(self.nv, 1)
        steps, qd, qdd = numeric.random_states(self.model, count, rng)
        Y = self.regressor(self.integrate(self.neutral(), steps), qd, qdd)
        return numeric.base_parameters(self.model, Y, tolerance)


def _frame_last(function: str, rates: Sequence[Any], frame: str | None) -> tuple[Any, str]:
    """Rates, and the name of a frame that follows them by position or is given by name."""
    given = (*rates, frame) if frame is not None else tuple(rates)
    names = [x for x in given if isinstance(x, str)]
    if len(names) != 1 or given[-1] is not names[0]:
        problem = (
            f"{function} needs one frame=, {doors.NEEDED['frame']}, after all time derivatives"
        )
        raise ArgumentError("E-CALL-340", problem)
    return given[:-1], names[0]
