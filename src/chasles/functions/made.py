"""The compiled functions of a model: made once, at the requested tier."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Thread
from typing import Any, Literal, cast

from chasles import backends
from chasles.backends import cache
from chasles.backends.arrays import COMPILING
from chasles.errors import ArgumentError, InputError
from chasles.expr import Program
from chasles.functions.compiled import Compiled, Recipe
from chasles.functions.doors import checked_options
from chasles.functions.programs import Derivative
from chasles.functions.tracing import WrenchKey
from chasles.model import Model
from chasles.model.description import Closure
from chasles.model.given import a_name, check_hash, some_names
from chasles.model.parameters import shape


class Functions:
    """Compiled functions of a model, made on demand and kept."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._made: dict[tuple[Any, ...], Compiled] = {}

    def __call__(
        self, function: str, *, tier: Literal["best", "quick"] = "best", **options: Any
    ) -> Compiled:
        """Return the compiled function with these options (`key`), made once.

        tier: "quick" for a function that starts with quickly compiled code (`Tiered`), unless the
        best code is available.
        """
        key = self.key(function, **options)
        if tier == "quick" and key not in self._made:
            recipe = self._recipe(key)
            if not is_known(recipe):
                first = backends.row(recipe.backend).first
                quick = Compiled(replace(recipe, backend=first), self.model)
                return cast(Compiled, Tiered(quick, recipe, lambda: self.made(key)))
        return self.made(key)

    def made(self, key: tuple[Any, ...]) -> Compiled:
        """Return the compiled function of a key."""
        if key not in self._made:
            with COMPILING:
                if key not in self._made:
                    self._made[key] = Compiled(self._recipe(key), self.model)
        return self._made[key]

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
        """Return the checked fields of a recipe for given options."""
        chosen = checked_options(self.model, function, options)
        a_name("a method", method, function)
        a_name("a backend", backend, function)
        check_hash(function, "dissipation", dissipation)
        right = isinstance(wrenches, tuple) and all(isinstance(w, WrenchKey) for w in wrenches)
        if not (right and isinstance(derivative, Derivative | None)):
            problem = "wrenches must be a tuple of WrenchKey, and derivative a Derivative"
            raise ArgumentError("E-CALL-117", problem, part=function)
        for name in some_names("parameters", parameters, function):
            shape(self.model.source, name)
        if a_name("dtype", dtype) not in ("float64", "float32"):
            raise InputError("E-ROBOT-023", f"dtype must be 'float64' or 'float32', not {dtype!r}")
        free = tuple(dict.fromkeys(parameters))
        return function, method, backend, dissipation, wrenches, chosen, derivative, free, dtype

    def closed(self, closure: Closure) -> "Functions":
        """Return the functions of the model with another closure of its loops."""
        source = replace(self.model.source, closure=closure)
        return Functions(replace(self.model, source=source))


class Tiered:
    """A function that starts with quickly compiled code and then switches to the best code.

    The best code is compiled in the background, mostly by other processes, and takes over when it
    is ready. Except for rounding, the two differ only in speed. All attributes are those of
    `Compiled`; only its built-in `fast` stays with the code that it was made for.
    """

    def __init__(self, quick: Compiled, recipe: Recipe, best: Callable[[], Compiled]) -> None:
        self._now, self._recipe, self._best = quick, recipe, best
        self._error: Exception | None = None
        self._worker = Thread(target=self._improve, name=f"chasles {recipe.function}", daemon=True)
        self._worker.start()

    def _improve(self) -> None:
        quick = self._now
        try:
            # Compiling holds locks only briefly, so that other threads can compile meanwhile.
            key = quick.key_of(self._recipe)
            backends.compile(quick.compiled, self._recipe.backend, self._recipe.dtype, key)
            self._now = self._best()
        except Exception as error:  # raised by `wait`; until then the quick code runs
            self._error = error

    @property
    def tier(self) -> Literal["quick", "best"]:
        """The code that runs now."""
        return "best" if self._now.recipe == self._recipe else "quick"

    def wait(self, timeout: float | None = None) -> Literal["quick", "best"]:
        """Wait for the best code, at most `timeout` seconds if given; return the tier."""
        self._worker.join(timeout)
        if self._error is not None:
            raise self._error
        return self.tier

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._now(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._now, name)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any]]:
        return Compiled, (self._recipe,)

    def __repr__(self) -> str:
        return f"{self._now!r}, {self.tier} tier"


def is_known(recipe: Recipe) -> bool:
    """Return True if the code of a recipe is loaded or in the cache."""
    if recipe.has_own_joints:
        return False  # its key depends on its program
    key = cache.key(recipe, "")
    return backends.known(key, _untraced, recipe.backend, recipe.dtype) is not None


def _untraced() -> Program:
    raise AssertionError("machine code of the CPU needs no program")
