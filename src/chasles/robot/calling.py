"""Functions of a robot by name: compiled once, derived, and installed with less overhead."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chasles.errors import InputError
from chasles.functions.compiled import Compiled
from chasles.functions.doors import derivative_names, order_option, wrench_arguments
from chasles.functions.programs import Derivative
from chasles.functions.tracing import WrenchKey
from chasles.model import Description
from chasles.robot.identity import Array, Identity


class Calling(Identity):
    """Calls of compiled functions."""

    def _begin(self, source: Description, *, mimic: bool, strict: bool = False) -> None:
        super()._begin(source, mimic=mimic, strict=strict)
        self._ready: dict[Any, Callable[..., Any]] = {}

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
        key = ("derivatives", function, wrt, order, dissipation, method, *options.items())
        plain = f_ext is None and out is None and threads is None
        ready = _found(self._ready, key) if plain else None
        if ready is not None:
            return ready(*arguments)
        if order not in (1, 2):
            problem = f"order must be 1 or 2, not {order!r}"
            raise InputError("E-ROBOT-022", problem, part="derivatives")
        names = derivative_names(function, wrt, order=options.get("order", 1), model=self.model)
        compiled, forces = self._derived(
            function, Derivative("jacobian", names, order), f_ext, dissipation, method, options
        )
        here = self.mechanism.bound(compiled)
        if plain and _hashable(key) and isinstance(here, Compiled):
            self._ready[key] = here.fast
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
        names = derivative_names(function, wrt, order=options.get("order", 1), model=self.model)
        compiled, forces = self._derived(
            function, Derivative("pullback", names), f_ext, dissipation, method, options
        )
        here = self.mechanism.bound(compiled)
        return here(*arguments, *forces, covector, out=out, threads=threads)

    def _derived(
        self,
        function: str,
        derivative: Derivative,
        f_ext: Mapping[str, Any] | None,
        dissipation: bool,
        method: str,
        options: Mapping[str, Any],
    ) -> tuple[Compiled, Sequence[Any]]:
        self.mechanism.refuse_open("derivatives", function)
        keys, forces = wrench_arguments(self.model, f_ext)
        compiled = self.function(
            function,
            method=method,
            dissipation=dissipation,
            wrenches=keys,
            derivative=derivative,
            **options,
        )
        return compiled, forces

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
        ready = _found(self._ready, key) if plain else None
        if ready is not None:
            return ready(*arrays)
        named = dict(zip(options[::2], options[1::2], strict=True))
        caller: Any = self.mechanism.caller(function, f_ext, **named)
        by_arrays_alone = getattr(caller, "plain", None)  # None if loads or a time are part of it
        if by_arrays_alone:
            self._install(function, caller)
            self._ready[key] = caller  # for what the fast entry does not take
        elif by_arrays_alone is False and plain and self.mechanism.t is None and _hashable(key):
            self._ready[key] = caller.fast
        return caller(*arrays, out=out, threads=threads)

    def _install(self, function: str, caller: Any) -> None:
        """From the first plain call on, the method is the function's fast entry."""
        if function not in self.__dict__:
            method = getattr(self, function)
            self.__dict__[function] = caller.entry(holder=self, fallback=method)


def _found(
    ready: Mapping[Any, Callable[..., Any]], key: tuple[Any, ...]
) -> Callable[..., Any] | None:
    try:
        return ready.get(key)
    except TypeError:
        return None


def _hashable(key: tuple[Any, ...]) -> bool:
    """Whether a call's options can be a key (a point given as a list cannot)."""
    try:
        hash(key)
    except TypeError:
        return False
    return True
