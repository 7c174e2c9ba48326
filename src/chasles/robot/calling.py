"""Functions of a robot by name: compiled once, derived, and installed with less overhead."""

from collections.abc import Mapping, Sequence
from typing import Any

from chasles.errors import InputError
from chasles.functions.compiled import Compiled
from chasles.functions.doors import order_option
from chasles.functions.programs import Derivative
from chasles.functions.tracing import WrenchKey
from chasles.robot.identity import Array, Identity


class Calling(Identity):
    """Calls of compiled functions."""

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
        """The compiled function with these options, made once.

        Of a robot with loops, not those that a program of the tree would leave open.
        """
        return self.mechanism.function(
            function,
            backend=backend,
            method=method,
            dissipation=dissipation,
            wrenches=wrenches,
            derivative=derivative,
            parameters=parameters,
            dtype=dtype,
            **options,
        )

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
        options = order_option(function, arguments) | options
        key = ("derivatives", (function, wrt, order, dissipation, method, *options.items()))
        plain = f_ext is None and out is None and threads is None
        ready = self.mechanism.found(key) if plain else None
        if ready is not None:
            return ready(*arguments)
        if order not in (1, 2):
            problem = f"order must be 1 or 2, not {order!r}"
            raise InputError("E-ROBOT-022", problem, part="derivatives")
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
        options = order_option(function, arguments) | options
        options |= {"dissipation": dissipation, "method": method}
        here, forces = self.mechanism.derived("pullback", function, wrt, f_ext=f_ext, **options)
        return here(*arguments, *forces, covector, out=out, threads=threads)

    def _call(
        self,
        function: str,
        arrays: tuple[Array, ...],
        options: tuple[Any, ...],
        f_ext: Mapping[str, Any] | None,
        out: Array,
        threads: int | None,
    ) -> Any:
        """Compute a function; from the second call on, by what is ready for its options.

        options: names and values in turn, a key without further ado.
        """
        key = (function, options)
        plain = f_ext is None and out is None and threads is None
        ready = self.mechanism.found(key) if plain else None
        if ready is not None:
            return ready(*arrays)
        caller: Any = self.mechanism.asked(key, f_ext)
        if not plain:
            return caller(*arrays, out=out, threads=threads)
        if getattr(caller, "plain", False) and self.mechanism.t is None:
            self._install(function, caller)
        return self.mechanism.keep(key, caller)(*arrays)

    def _install(self, function: str, caller: Any) -> None:
        """From the first plain call on, the method is the function's fast entry."""
        if function not in self.__dict__:
            method = getattr(self, function)
            self.__dict__[function] = caller.entry(holder=self, fallback=method)
