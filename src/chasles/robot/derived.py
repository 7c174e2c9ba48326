"""Robot methods for compiled functions, derivatives, linearization and CUDA graphs."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, Literal

import numpy as np

from chasles.algorithms import METHODS
from chasles.backends.arrays import checked_count
from chasles.errors import ArgumentError, InputError
from chasles.functions import doors, numeric
from chasles.functions.compiled import Compiled
from chasles.functions.graphs import Graph, captured, initial, shapes_of
from chasles.functions.programs import Derivative, spaces
from chasles.functions.tracing import WrenchKey
from chasles.mechanisms import Coordinates
from chasles.model.given import a_name, checked_step
from chasles.names import one_of
from chasles.robot.identity import Array
from chasles.robot.motions import Moving


class Deriving(Moving):
    """Robot methods that compile, differentiate or linearize functions, or capture CUDA graphs."""

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
        """Return a compiled function of the robot. Compiled functions are cached.

        Parameters
        ----------
        function : str
            Name of a method of the robot.
        backend, method, dissipation : optional
            As in `chasles.compile`.
        wrenches : tuple of WrenchKey
            External wrenches that become inputs of the function.
        derivative : Derivative, optional
            Derivative to compile instead of the function.
        parameters : tuple of str
            Model parameters that become inputs of the function.
        dtype : {"float64", "float32"}, optional
            Data type of all arrays.
        **options
            Options of the method, for example frame="tool".

        Returns
        -------
        callable
            The compiled function.

        Raises
        ------
        ModelError
            If the function does not keep loops closed and the robot has loops, if the method does
            not support the robot, or if a frame or parameter does not exist.
        InputError
            If `function`, `backend`, `method`, `dtype` or the value of an option is unknown.
        ArgumentError
            If an option is unknown, or if a required option is missing.

        Examples
        --------
        >>> import chasles
        >>> import numpy as np
        >>> compiled = chasles.robots.planar(2).function("mass_matrix")
        >>> compiled(np.array([0.0, 0.5])).round(3)
        array([[2.544, 0.772],
               [0.772, 0.333]])
        """
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
        """Capture a function in a CUDA graph, which launches in a few microseconds.

        Parameters
        ----------
        function : str or callable
            Name of a robot function, or a Python function of arrays that may call robot functions
            and functions of the array library. The arguments of a Python function must be named q,
            qd, qdd or tau, or be listed in `shapes`.
        batch : int or tuple of int, optional
            Number of states, or the leading shape of all arrays.
        library : {"cupy", "torch"}, optional
            Array library whose arrays, memory and stream are used.
        dtype : {"float64", "float32"}, optional
            Data type of all arrays.
        device : int, optional
            Index of the GPU. Default: the current device of the library.
        shapes : mapping from str to tuple of int, optional
            Shapes of additional arguments of a Python function, for one state.
        **options
            Options of the named function, for example frame="tool".

        Returns
        -------
        Graph
            The graph. Write to its `inputs`, a mapping from name to array, in place. A call without
            arguments launches the graph on the array library's current stream and returns
            `outputs`, which every launch overwrites. Arrays passed to a call are first copied to
            the inputs.

        Raises
        ------
        InputError
            If `library` or `dtype` is unknown, if `batch` is not valid, or if the arrays need more
            than the available memory.
        ArgumentError
            If `function` is neither a name nor a Python function, if the shape of an argument is
            unknown, or if an option does not apply.

        Examples
        --------
        A graph needs a GPU.

        >>> import chasles
        >>> robot = chasles.robots.puma560()
        >>> graph = robot.graph("forward_dynamics", 1000)  # doctest: +SKIP
        >>> graph.inputs["tau"][...] = 1.0  # doctest: +SKIP
        >>> qdd = graph()  # doctest: +SKIP
        """
        lead = batch if isinstance(batch, tuple) else (batch,)
        lead = tuple(checked_count("graph: batch", size) for size in lead)
        if dtype not in ("float64", "float32"):
            problem = f"`dtype` must be 'float64' or 'float32', not {dtype!r}"
            raise InputError("E-GPU-028", problem, part="graph")
        if isinstance(function, str):
            if shapes is not None:
                problem = f"`shapes` applies only to Python functions, not to {function!r}"
                raise ArgumentError("E-GPU-029", problem, "omit `shapes`", part="graph")
            self.mechanism.refuse_open("graph", function)
            run: Callable[..., Any] = self.function(function, **options)
            known = {v.name: v.shape for v in run.interface.inputs}  # type: ignore[attr-defined]
        else:
            if options:
                problem = f"options ({', '.join(options)}) apply only to functions given by name"
                raise ArgumentError(
                    "E-GPU-030",
                    problem,
                    "pass the options to the robot functions that your function calls",
                    part="graph",
                )
            usual = {"q": (self.nq,), **dict.fromkeys(("qd", "qdd", "tau"), (self.nv,))}
            run, known = function, shapes_of(function, usual, {} if shapes is None else shapes)
        values = {name: initial(name, lead + shape, dtype) for name, shape in known.items()}
        for name in ("q", "q0", "q1"):  # zero is not a valid quaternion
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
        """Return exact derivatives of a robot function.

        Parameters
        ----------
        function : str
            Name of a method, for example "inverse_dynamics".
        *arguments : array_like
            Arguments of the function.
        wrt : str or sequence of str, optional
            Arguments with respect to which derivatives are computed. Default: all.
        order : {1, 2}, optional
            Order of the derivatives.
        f_ext, dissipation, method, out, threads : optional
            As in the function.
        **options
            Options of the function, for example frame="tool".

        Returns
        -------
        ndarray or tuple of ndarray
            One array if `wrt` is a single name, otherwise a tuple in the order of `wrt`. The shape
            of each array is the shape of the result followed by the shape of the argument.
            Derivatives with respect to q are derivatives of f(integrate(q, d)) with respect to d at
            d = 0, and have nv columns. With order 2, there is one array for each pair of arguments,
            and its shape is the shape of the result followed by the shapes of both arguments.

        Raises
        ------
        InputError
            If `function`, an argument in `wrt`, `method` or the value of an option is unknown, if
            `order` is not 1 or 2, or if an array has the wrong shape.
        ArgumentError
            If an option is unknown, if a required option is missing, or if the number of arrays is
            wrong.
        ModelError
            If the derivatives do not keep loops closed and the robot has loops, or if the method
            does not support the robot.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.planar(2)
        >>> robot.derivatives("gravity_forces", [0.0, 0.5], wrt="q").round(3)
        array([[-2.352, -2.352],
               [-2.352, -2.352]])
        """
        options = doors.order_option(function, arguments) | options
        words = function, wrt, order, dissipation, method, *chain.from_iterable(options.items())
        key = ("derivatives", words)
        plain = f_ext is None and out is None and threads is None
        ready = self.mechanism.found(key) if plain else None
        if ready is not None:
            return ready(*arguments)
        if type(order) is not int or order not in (1, 2):
            raise InputError(
                "E-ROBOT-022", f"`order` must be 1 or 2, not {order!r}", part="derivatives"
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
        """Return the vector-Jacobian product of a robot function (reverse mode).

        The computation takes a few times as long as the function itself.

        Parameters
        ----------
        function : str
            Name of a method, for example "inverse_dynamics".
        *arguments : array_like
            Arguments of the function.
        covector : array_like
            Array with the shape of the result.
        wrt : str or sequence of str, optional
            Arguments with respect to which derivatives are computed. Default: all.
        f_ext, dissipation, method, out, threads : optional
            As in the function.
        **options
            Options of the function.

        Returns
        -------
        ndarray or tuple of ndarray
            Vector-Jacobian product for each argument in `wrt`, with the shape of the argument.

        Raises
        ------
        InputError
            If `function`, an argument in `wrt`, `method` or the value of an option is unknown, or
            if an array has the wrong shape.
        ArgumentError
            If an option is unknown, if a required option is missing, or if the number of arrays is
            wrong.
        ModelError
            If the derivatives do not keep loops closed and the robot has loops, or if the method
            does not support the robot.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.planar(2)
        >>> robot.pullback("gravity_forces", [0.0, 0.5], covector=[1.0, 0.0], wrt="q").round(3)
        array([-2.352, -2.352])
        """
        options = doors.order_option(function, arguments) | options
        options |= {"dissipation": dissipation, "method": method}
        here, forces = self.mechanism.derived("pullback", function, wrt, f_ext=f_ext, **options)
        return here(*arguments, *forces, covector, out=out, threads=threads)

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
        """Linearize the dynamics about a state: xdot = A x + B u.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions (rad or m).
        qd : array_like, shape (..., nv)
            Joint velocities (rad/s or m/s).
        tau : array_like, shape (..., nv)
            Joint torques or forces (N m or N).
        dt : float, optional
            Time step (s). If given, A and B describe the discrete-time system x(t + dt) = A x + B
            u, which is exact for an input that is constant during the step.
        actuation : array_like, shape (nv, m), or sequence of str, optional
            Matrix S that maps inputs u to joint torques S u, or the names of the actuated joints.
            Default: all joints.
        coordinates : {"independent", "tree"}, optional
            Coordinates of a robot with loops; see Notes.
        f_ext, dissipation, out, threads : optional
            As in `forward_dynamics`.

        Returns
        -------
        A : ndarray, shape (..., 2nv, 2nv)
            State matrix, [[-ad(qd), 1], [d qdd/dq, d qdd/dqd]]. ad(qd) is the matrix of the Lie
            bracket with qd, and is zero for joints for which `integrate` adds v to q.
        B : ndarray, shape (..., 2nv, m)
            Input matrix, [0; M^-1 S], where M is the mass matrix.

        Raises
        ------
        OpenLoop
            If q or qd violates the loop constraints.
        SingularPosition
            If `loop_matrix` loses rank at q.
        ArgumentError
            If an array is not a NumPy array, or if `dt` or `actuation` has the wrong type.
        InputError
            If an array has the wrong shape, if `dt` is not positive and finite, if `actuation` is
            not finite or names a joint twice, or if `out` cannot hold the result.
        ModelError
            If the robot depends on time, or if a joint in `actuation` does not exist.

        Notes
        -----
        The state x = (d, dqd) is the deviation from the nominal motion: the tangent vector d (see
        `integrate`) is the displacement from q, and dqd is the deviation of the joint velocities
        from qd (Balafoutis and Patel 1991, Eq 7.2.3). The input u is the deviation of the inputs
        from their nominal values. For a robot with loops, x contains the n `independent`
        coordinates, A is (..., 2n, 2n) and B is (..., 2n, m). coordinates="tree" ignores the loops.

        The six components of each `Wrench` in `f_ext` are held constant. The options `axes` and
        `at` of a wrench determine how it changes with q. With axes="world", the direction of the
        wrench is constant in space. With axes="frame", the wrench rotates with the frame. With
        at="frame" or (x, y, z), the reference point of the moment moves with the frame. With
        at="world", the reference point is the world origin.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.planar(2)
        >>> A, B = robot.linearize([0.0, 0.5], [0.0, 0.0], [0.0, 0.0])
        >>> A.shape, B.shape
        ((4, 4), (4, 2))
        """
        options = ("coordinates", coordinates, "dissipation", dissipation)
        pair = partial(self._call, "linearize", (q, qd, tau), options, f_ext)
        if dt is None and actuation is None:
            return pair(out, threads)
        doors.refuse("linearize with dt= or actuation=", q, qd, tau)
        step = None if dt is None else checked_step(dt)
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
        """Return the row and column indices of the matrix entries returned with `packed=True`.

        Parameters
        ----------
        function : {"mass_matrix", "ltdl_factors", "ltl_factor"}
            Name of the function that returns the matrix.

        Returns
        -------
        rows, columns : ndarray of int, shape (entries,)
            For "mass_matrix", indices of the lower triangle, row by row. For "ltl_factor" and L in
            "ltdl_factors", indices of joint pairs on the same branch of the tree. All other entries
            are zero or follow from symmetry.

        Raises
        ------
        InputError
            If the function has no packed result.
        ArgumentError
            If `function` is not a string.

        Examples
        --------
        >>> import chasles, numpy as np
        >>> robot = chasles.robots.quadruped()
        >>> q = robot.random(seed=0)
        >>> L = np.zeros((robot.nv, robot.nv))
        >>> L[robot.packed_entries("ltl_factor")] = robot.ltl_factor(q, packed=True)
        >>> bool(np.allclose(L.T @ L, robot.mass_matrix(q)))
        True
        """
        packs = [name for name in METHODS if "packed" in spaces(name).options]
        if a_name("a function", function, "packed_entries") not in packs:
            problem = f"{function!r} has no packed result"
            raise InputError("E-CALL-097", problem, one_of(function, packs))
        matrix, *_ = spaces(function).outputs
        rows, columns = np.array(matrix.packed(self.model)).reshape(-1, 2).T
        return rows, columns
