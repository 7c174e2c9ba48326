"""Functions compiled for one robot. `chasles.compile` returns them, and `Robot` calls them."""

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import BuiltinFunctionType
from typing import Any, Literal, cast
from weakref import WeakSet, WeakValueDictionary

import numpy as np

from chasles import backends
from chasles.backends.arrays import COMPILING, Kernel, Target, checked, relaid, run
from chasles.errors import ArgumentError, ChaslesError, InputError, ModelError, StateError
from chasles.expr import Interface, Program, Staged
from chasles.functions.derivatives import Differential, differentiated
from chasles.functions.doors import caller, is_single, module, taker
from chasles.functions.programs import (
    Derivative,
    Recent,
    checked_options,
    may_be_staged,
    runnable,
)
from chasles.functions.tiers import Tiered, is_known
from chasles.functions.tracing import WrenchKey, straight
from chasles.model import Description, Model, build
from chasles.model.description import Closure
from chasles.model.given import a_name, check_hash, some_names
from chasles.model.parameters import shape
from chasles.model.spaces import PositionSpace


@dataclass(frozen=True)
class Recipe:
    """Specification of a compiled function: mechanism, function name and options."""

    source: Description
    mimic: bool
    function: str
    method: str
    backend: str
    dissipation: bool
    wrenches: tuple[WrenchKey, ...]
    options: tuple[tuple[str, Any], ...]
    derivative: Derivative | None = None
    parameters: tuple[str, ...] = ()
    dtype: str = "float64"
    chain: tuple[Differential, ...] = ()

    @property
    def has_own_joints(self) -> bool:
        """Return True if some joints have user-defined classes, whose code may change."""
        return any(j.custom is not None for j in (*self.source.joints, *self.source.loops))


_HOST = frozenset({np.ndarray, list, tuple})
_ARRAYS, _SINGLE, _NAMED = {np.ndarray}, {np.dtype(np.float32)}, {"out", "threads"}
_ALIVE: WeakSet["Compiled"] = WeakSet()
_KNOWN: WeakValueDictionary[str, "Compiled"] = WeakValueDictionary()
"""Compiled functions by cache key. Computation graphs of other libraries store only this key."""
_Traced = WeakValueDictionary[tuple[Recipe, tuple[tuple[str, int], ...]], Program | Staged]
_TRACED: _Traced = WeakValueDictionary()
"""Traced programs, by specification (without backend and dtype) and tracing options.

The tracing options are `staged` and `similar` (see `programs.runnable`). A program is kept as long
as a compiled function uses it.
"""
is_traced: Callable[[], bool] = bool
"""Return True if PyTorch is loaded and its compiler is tracing the call."""


class Compiled:
    """A function of arrays, compiled for one robot.

    Call the object with arrays whose leading shapes broadcast together, and optionally with `out=`.
    If all arrays are float32, results are computed in single precision, otherwise in double
    precision. For PyTorch, JAX and CuPy arrays, results have the same array type. The function can
    be shared by threads and pickled. Unpickling loads the code from the cache, or compiles it
    again.
    """

    __slots__ = ("__dict__", "__weakref__", "_entry")

    def __init__(
        self, recipe: Recipe, model: Model | None = None, parent: "Compiled | None" = None
    ) -> None:
        self.recipe, self.parent = recipe, parent
        self.model = model or build(recipe.source, mimic=recipe.mimic)
        self._differentials: dict[Differential, Compiled] = Recent()
        self.quick: dict[type, Callable[..., Any]] = {}
        """Faster callables for arrays of other libraries, keyed by the type of the first array."""
        self.residents: dict[str, Any] = {}
        """GPU entry points (`cuda.resident.Resident`) by library name."""
        self.key = self.key_of(recipe)
        """Cache key of the compiled code, identical in all processes."""
        _ALIVE.add(self)
        _KNOWN[self.key] = self
        if "torch" in sys.modules:
            caller("torch")  # import now because PyTorch's compiler cannot trace imports
        with COMPILING:
            target = recipe.backend, recipe.dtype
            found = backends.known(self.key, lambda: straight(self.compiled), *target)
            self.kernel: Any = found or backends.compile(self.compiled, *target, self.key)
            """The kernel compiled by the backend."""
        self.interface: Interface = self.kernel.interface

    tier: Literal["best"] = "best"

    def wait(self, timeout: float | None = None) -> Literal["best"]:
        """Return immediately, because the code is already final (see `Tiered`).

        Parameters
        ----------
        timeout : float, optional
            Timeout (s), which is ignored.

        Returns
        -------
        tier : "best"
            Tier of the code.

        Examples
        --------
        >>> import chasles
        >>> chasles.compile(chasles.robots.planar(1), "mass_matrix").wait()
        'best'
        """
        return self.tier

    def key_of(self, recipe: Recipe) -> str:
        """Return the cache key of this function for a given backend and data type.

        Parameters
        ----------
        recipe : Recipe
            Specification of this function, with the given backend and data type.

        Returns
        -------
        key : str
            Key in the cache of compiled code.

        Notes
        -----
        The key includes a hash of the program if the robot has user-defined joints, because
        different joint classes may have the same name.

        Examples
        --------
        >>> import chasles
        >>> function = chasles.compile(chasles.robots.planar(1), "mass_matrix")
        >>> function.key_of(function.recipe) == function.key
        True
        """
        return backends.code_key(recipe, self.program.hash if self.recipe.has_own_joints else "")

    @cached_property
    def program(self) -> Program:
        """The straight-line program, traced on first use and shared by all backends and dtypes."""
        return straight(self._traced())

    @cached_property
    def compiled(self) -> Program | Staged:
        """The program that the backend compiles.

        Unlike `program`, this program may compute factor matrices that are multiplied at run time
        (`Staged`), or use the same instructions for limbs with the same structure
        (`Program.alike`).
        """
        recipe, backend = self.recipe, backends.row(self.recipe.backend)
        matrices = may_be_staged(recipe.function, recipe.derivative)
        if matrices and backend.staged is not None and not recipe.chain:
            return self._traced(staged=backend.staged)
        bodies, instructions = backend.similar
        plain = matrices or recipe.chain or recipe.derivative or len(self.model.bodies) <= bodies
        found = self.program if plain else straight(self._traced(similar=True))
        return found if len(found.code) > instructions else self.program

    def _traced(self, **wanted: int) -> Program | Staged:
        if self.recipe.has_own_joints:
            return self._trace(**wanted)
        bare, form = replace(self.recipe, backend="", dtype=""), tuple(wanted.items())
        if (found := _TRACED.get((bare, form))) is None:
            found = _TRACED.setdefault((bare, form), self._trace(**wanted))
            if isinstance(found, Program) and "staged" in wanted:
                _TRACED.setdefault((bare, ()), found)
        return found

    def _trace(self, **wanted: int) -> Program | Staged:
        recipe = self.recipe
        names = ("method", "dissipation", "wrenches", "derivative", "parameters")
        chosen = {name: getattr(recipe, name) for name in names} | dict(recipe.options)
        chosen |= {"smooth": bool(recipe.chain), **wanted}
        traced = runnable(self.model, recipe.function, **chosen)
        return differentiated(straight(traced), recipe.chain) if recipe.chain else traced

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if arguments:
            kind = type(arguments[0])
            if kind in _HOST:
                return self.fast(*arguments, **named)
            quick = self.quick.get(kind)
            if quick is not None and not is_traced():
                return quick(*arguments, **named)
        return self.call(*arguments, **named)  # PyTorch's compiler traces this call

    def call(self, *arguments: Any, out: Any = None, threads: int | None = None) -> Any:
        """Call the function through Python, for arguments that the C callable `fast` rejects.

        Parameters
        ----------
        *arguments : array_like
            One array for each input, with leading shapes that broadcast together.
        out : ndarray or tuple of ndarray, optional
            Array in which the result is stored; a tuple of arrays if there are several results.
        threads : int, optional
            Number of threads. Default: all cores for large batches.

        Returns
        -------
        results : ndarray or tuple of ndarray
            Results, bitwise identical to those of a direct call.

        Raises
        ------
        ArgumentError
            If the number of arrays is wrong, if an argument is not an array of real numbers, or if
            the arrays belong to several libraries.
        InputError
            If an array has the wrong shape, if the leading shapes do not broadcast, if a quaternion
            is zero, if `out` cannot hold the result, or if `threads` is not a positive integer.
        MissingPackageError
            If the package of an array library cannot be imported.

        Examples
        --------
        >>> import chasles
        >>> chasles.compile(chasles.robots.planar(1), "gravity_forces").call([0.0])
        array([4.905])
        """
        inputs = self.interface.inputs
        if len(arguments) != len(inputs):
            names = ", ".join(v.name for v in inputs)
            problem = f"expected {len(inputs)} arrays ({names}), but got {len(arguments)}"
            raise ArgumentError("E-CALL-035", problem, part=self.recipe.function)
        take = taker(self, arguments, out)
        if take is not None:
            return take(self, arguments, out, threads)
        single = self.recipe.dtype == "float64" and all(map(is_single, arguments)) and arguments
        if not backends.takes_numpy(self.recipe.backend):
            kernel = self.single.kernel if single else self.kernel
            return module("cupy").run(self, kernel, arguments, out, threads)
        if single:
            return self.single(*arguments, out=out, threads=threads)
        return self._run(self.kernel, arguments, out, threads)

    def _run(self, kernel: Kernel, arguments: Sequence[Any], out: Any, threads: int | None) -> Any:
        given = checked(kernel, self.recipe.function, arguments)
        self._check_quaternions(given.arrays)
        return run(kernel, self.recipe.function, given, out, threads)

    @property
    def plain(self) -> bool:
        """Return True if all options of the function have their default values."""
        recipe = self.recipe
        asked = recipe.dissipation or recipe.derivative or recipe.wrenches or recipe.options
        return recipe.method == "fastest" and not asked

    @cached_property
    def timed(self) -> bool:
        """Return True if the function has a time input."""
        return any(variable.name == "t" for variable in self.interface.inputs)

    @cached_property
    def _clock(self) -> int:
        """Index of the time input."""
        return [variable.name for variable in self.interface.inputs].index("t")

    def at(self, t: Any) -> "Compiled | AtTime":
        """Return the function evaluated at a fixed time, without the time input.

        Parameters
        ----------
        t : array_like, shape (...)
            Time (s); not used if the robot does not depend on time.

        Returns
        -------
        function : Compiled or AtTime
            Function of the other inputs.

        Raises
        ------
        ModelError
            If the robot depends on time and t is None.

        Examples
        --------
        >>> import chasles
        >>> function = chasles.compile(chasles.robots.planar(1), "gravity_forces")
        >>> function.at(0.5) is function  # this robot does not depend on time
        True
        """
        if not self.timed:
            return self
        if t is None:
            problem = f"robot {self.model.name!r} depends on time"
            remedy = f"evaluate it at a time: robot.at_time(t).{self.recipe.function}(...)"
            raise ModelError("E-CALL-036", problem, remedy, part=self.recipe.function)
        return AtTime(self, t, self._clock)

    @cached_property
    def single(self) -> "Compiled":
        """Single-precision version of this function, called if all arrays are float32."""
        if self.recipe.dtype == "float32":
            return self
        if self.parent is not None:
            return self.parent.single.differential(self.recipe.chain[-1])
        return type(self)(replace(self.recipe, dtype="float32"), self.model)

    @cached_property
    def cuda(self) -> "Compiled":
        """GPU version of this function, for CuPy arrays."""
        usual, *_ = backends.devices()["cuda"]
        if self.recipe.backend == usual:
            return self
        return type(self)(replace(self.recipe, backend=usual), self.model)

    def from_host(self, *arguments: Any, out: Any = None) -> Any:
        """Call the function on a GPU: copy the host arrays to the GPU and the results back.

        Parameters
        ----------
        *arguments : array_like
            Arguments of the function, in host memory.
        out : ndarray or tuple of ndarray, optional
            Arrays in host memory in which the results are stored.

        Returns
        -------
        ndarray or tuple of ndarray
            Results of the function, in host memory.

        Raises
        ------
        ArgumentError
            If an argument is not an array of real numbers.
        InputError
            If an array has the wrong shape, if the leading shapes do not broadcast, if a quaternion
            is zero, or if `out` cannot hold the result.
        """
        return self._run(self.cuda.kernel, arguments, out, None)

    def pushforward(self, wrt: tuple[str, ...]) -> "Compiled":
        """Return the function that computes a Jacobian-vector product.

        Parameters
        ----------
        wrt : tuple of str
            Names of inputs.

        Returns
        -------
        function : Compiled
            Function of the same inputs, followed by a tangent vector for each input in `wrt`.
            Each tangent vector has the same shape as its input (nq entries for q), like the results
            of `pullback`.

        Raises
        ------
        InputError
            If an input in `wrt` does not exist, or if `wrt` lists an input twice.

        Examples
        --------
        >>> import chasles
        >>> function = chasles.compile(chasles.robots.planar(1), "gravity_forces")
        >>> [v.name for v in function.pushforward(("q",)).interface.inputs]
        ['q', 'd_q_1']
        """
        return self.differential(Differential("pushforward", wrt))

    def pullback(self, wrt: tuple[str, ...]) -> "Compiled":
        """Return the function that computes a vector-Jacobian product.

        Parameters
        ----------
        wrt : tuple of str
            Names of inputs.

        Returns
        -------
        function : Compiled
            Function of the same inputs, followed by a covector for each result. The
            function returns a covector for each input in `wrt`.

        Raises
        ------
        InputError
            If an input in `wrt` does not exist, or if `wrt` lists an input twice.

        Examples
        --------
        >>> import chasles
        >>> function = chasles.compile(chasles.robots.planar(1), "gravity_forces")
        >>> [v.name for v in function.pullback(("q",)).interface.inputs]
        ['q', 'bar_result_1']
        """
        return self.differential(Differential("pullback", wrt))

    def differential(self, applied: Differential) -> "Compiled":
        """Return a derivative of this function.

        Derivatives are cached, and their `parent` is this function.
        """
        with COMPILING:
            found = self._differentials.get(applied)
            if found is None:
                recipe = replace(self.recipe, chain=(*self.recipe.chain, applied))
                self._differentials[applied] = found = type(self)(recipe, self.model, self)
        return found

    @cached_property
    def fast(self) -> Callable[..., Any]:
        """C callable for this function, with a call overhead of tens of nanoseconds."""
        found = self.entry(holder=_Found(self), fallback=self.call)
        if isinstance(found, BuiltinFunctionType):
            backends.called_by_slot(Compiled)
            self._entry = found  # calls to this object now go directly to C
        return found

    def entry(
        self, *, holder: Any, fallback: Callable[..., Any], method: Callable[..., Any] | None = None
    ) -> Callable[..., Any]:
        """Return a C callable with the signature and docstring of `method` (default: `fallback`).

        `fallback` handles the calls that the C code cannot handle.
        """
        facts: dict[str, Any] = {"holder": holder, "fallback": fallback, "again": self.again}
        return entry_of(method or fallback, self.recipe.function, self.kernel, **facts)

    def again(self, owner: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Handle a call that a C callable rejects, for example because an array has a new layout.

        Return NotImplemented if the call must be handled by Python code.
        """
        quick = self.quick.get(type(arguments[0])) if arguments else None
        if quick is not None and (not named or (len(named) == 1 and "out" in named)):
            return quick(*arguments, **named)
        if not named.keys() <= _NAMED or len(arguments) != len(self.interface.inputs):
            return NotImplemented
        if {type(a) for a in arguments} != _ARRAYS:
            return NotImplemented
        if self.recipe.dtype == "float64" and {a.dtype for a in arguments} == _SINGLE:
            found = self.single.fast(*arguments, **named)
            sources = [4 * k for k in range(len(arguments))]
            backends.learn(owner, arguments, named, lambda: Target(self.single.fast, sources))
            return found
        plain = relaid(self.kernel, arguments)
        if plain is None:
            return NotImplemented
        flat = len(plain.batch) < 2
        if not flat and named.get("out") is not None:
            return NotImplemented
        try:
            found = self.fast(*plain.arrays, **named)
        except ChaslesError:
            return NotImplemented  # Python code will repeat the call and report the invalid state
        if flat:
            return found
        several = found if isinstance(found, tuple) else (found,)
        shaped = [a.reshape(plain.batch + a.shape[1:]) for a in several]
        return tuple(shaped) if isinstance(found, tuple) else shaped[0]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any]]:
        if self.parent is not None:
            return self.parent.differential, (self.recipe.chain[-1],)
        return type(self), (self.recipe,)

    def __repr__(self) -> str:
        inputs = ", ".join(variable.name for variable in self.interface.inputs)
        of = f"{self.recipe.function}({inputs}) of {self.model.name!r:.80}"
        return f"<{of} by {self.recipe.backend}>"

    def _check_quaternions(self, arrays: Sequence[np.ndarray]) -> None:
        """Raise an error if a quaternion is zero."""
        if any(0 in a.shape[:-1] for a in arrays):
            return
        for number, first in self.interface.nonzero:
            q = arrays[number]
            w = q[..., first]
            if np.count_nonzero(w) == w.size:
                continue
            bad = ~np.any(q[..., first : first + 4], axis=-1)
            if np.any(bad):
                joint = PositionSpace().quaternions(self.model)[first]
                at = f" at index {tuple(map(int, np.argwhere(bad)[0]))}" if q.ndim > 1 else ""
                problem = f"the quaternion of joint {joint!r} is zero{at} (q[{first}:{first + 4}])"
                remedy = "use (1, 0, 0, 0) for the identity rotation"
                raise InputError("E-CALL-037", problem, remedy, part=self.recipe.function)


def recall(key: str) -> Compiled:
    """Return the function with a given cache key.

    Graphs traced by other libraries can store only strings and numbers, so they store the key.
    """
    found = _KNOWN.get(key)
    if found is not None:
        return found
    for function in list(_ALIVE):  # functions of equal robots share a key
        if function.key == key:
            return _KNOWN.setdefault(key, function)
    remedy = "keep a reference to the result of chasles.compile while the graph is in use"
    raise StateError(
        "E-CALL-042", "a graph calls a compiled function that no longer exists", remedy
    )


@dataclass(frozen=True)
class AtTime:
    """Compiled function of a time-dependent robot, evaluated at times t (s) of shape (...)."""

    compiled: Compiled
    t: Any
    place: int
    """Index of the time input."""

    def __call__(self, *arrays: Any, **options: Any) -> Any:
        return self.compiled(*arrays[: self.place], self.t, *arrays[self.place :], **options)


@dataclass(frozen=True)
class _Found:
    """Object that makes the fast entry (a C callable) of a compiled function picklable.

    Pickle stores the fast entry as this object and the name of an attribute. `__getattr__` returns
    the fast entry for any name that does not begin with two underscores.
    """

    compiled: Compiled

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.compiled.fast


def entry_of(
    method: Callable[..., Any], name: str, kernel: Any = None, **facts: Any
) -> Callable[..., Any]:
    """Return a fast entry (a C callable) with the signature and docstring of a method.

    The signature has no annotations.
    """
    parameters = inspect.signature(method).parameters.values()
    bare = inspect.Signature([p.replace(annotation=p.empty) for p in parameters])
    signature, doc = str(bare)[1:-1], inspect.getdoc(method) or ""
    return backends.fast_entry(kernel, name=name, signature=signature, doc=doc, **facts)


class Functions:
    """Functions of a model, compiled on demand and cached."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._made: dict[tuple[Any, ...], Compiled] = Recent()

    def __call__(
        self, function: str, *, tier: Literal["best", "quick"] = "best", **options: Any
    ) -> Compiled:
        """Return the function with the given options, compiled on first use.

        With tier="quick", the function starts with code that compiles quickly (`Tiered`) unless
        the best code is already available.
        """
        key = self.key(function, **options)
        first = backends.row(options.get("backend", backends.USUAL)).first
        if tier not in (("best", "quick") if first else ("best",)):
            problem = f"`tier` must be 'best', or 'quick' with backend='llvm', not {tier!r}"
            raise InputError("E-ROBOT-040", problem, part=function)
        if tier == "quick" and key not in self._made:
            recipe = self._recipe(key)
            if not is_known(recipe):
                quick = Compiled(replace(recipe, backend=first), self.model)
                return cast(Compiled, Tiered(quick, recipe, lambda: self.made(key)))
        return self.made(key)

    def made(self, key: tuple[Any, ...]) -> Compiled:
        """Return the function for a key (see `key`), compiled on first use."""
        found = self._made.get(key)
        if found is None:
            with COMPILING:
                found = self._made.get(key)
                if found is None:
                    self._made[key] = found = Compiled(self._recipe(key), self.model)
        return found

    def _recipe(self, key: tuple[Any, ...]) -> Recipe:
        return Recipe(self.model.source, self.model.mimics, *key)

    def key(
        self,
        function: str,
        *,
        backend: str = backends.USUAL,
        method: str = "fastest",
        dissipation: bool = False,
        wrenches: tuple[WrenchKey, ...] = (),
        derivative: Derivative | None = None,
        parameters: Sequence[str] = (),
        dtype: str = "float64",
        **options: Any,
    ) -> tuple[Any, ...]:
        """Check the options of a function, and return the fields of its `Recipe`."""
        chosen = checked_options(self.model, function, options)
        a_name("a method", method, function)
        a_name("a backend", backend, function)
        check_hash(function, "dissipation", dissipation)
        right = isinstance(wrenches, tuple) and all(isinstance(w, WrenchKey) for w in wrenches)
        if not (right and isinstance(derivative, Derivative | None)):
            problem = (
                "`wrenches` must be a tuple of WrenchKey objects, and `derivative` must be a "
                "Derivative object or None"
            )
            raise ArgumentError("E-CALL-117", problem, part=function)
        for name in some_names("parameters", parameters, function):
            shape(self.model.source, name)
        if a_name("dtype", dtype) not in ("float64", "float32"):
            raise InputError(
                "E-ROBOT-023", f"`dtype` must be 'float64' or 'float32', not {dtype!r}"
            )
        free = tuple(dict.fromkeys(parameters))
        return function, method, backend, dissipation, wrenches, chosen, derivative, free, dtype

    def closed(self, closure: Closure) -> "Functions":
        """Return the functions of the same model with loop equations eliminated by `closure`."""
        source = replace(self.model.source, closure=closure)
        return Functions(replace(self.model, source=source))
