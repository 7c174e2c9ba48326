"""Functions that start with quickly compiled code and later switch to fully optimized code."""

from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal

from chasles import backends
from chasles.expr import Program

if TYPE_CHECKING:
    from chasles.functions.compiled import Compiled, Recipe


class Tiered:
    """Function that starts with quickly compiled code and later switches to the best code.

    The best code is compiled in the background, mostly by other processes, and is used as soon as
    it is ready. The results of both versions are bitwise identical. The function has all attributes
    of `Compiled`. A callable read from `fast` before the switch continues to run the first version.
    """

    def __init__(self, quick: "Compiled", recipe: "Recipe", best: Callable[[], "Compiled"]) -> None:
        self._now, self._recipe, self._best = quick, recipe, best
        self._error: Exception | None = None
        self._worker = Thread(target=self._improve, name=f"chasles {recipe.function}", daemon=True)
        self._worker.start()

    def _improve(self) -> None:
        quick = self._now
        try:
            # Compilation holds locks only briefly, so that other threads can compile at the same
            # time.
            key = quick.key_of(self._recipe)
            backends.compile(quick.compiled, self._recipe.backend, self._recipe.dtype, key)
            self._now = self._best()
        except Exception as error:  # `wait` raises the error; calls still use the quick code
            self._error = error

    @property
    def tier(self) -> Literal["quick", "best"]:
        """Compilation tier of the code currently in use: "quick" or "best"."""
        return "best" if self._now.recipe == self._recipe else "quick"

    def wait(self, timeout: float | None = None) -> Literal["quick", "best"]:
        """Wait at most `timeout` seconds for the best code, and return the current tier."""
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
        return type(self._now), (self._recipe,)

    def __repr__(self) -> str:
        return f"{self._now!r}, {self.tier} tier"


def is_known(recipe: "Recipe") -> bool:
    """Return True if the compiled code of a function is already loaded or cached."""
    if recipe.has_own_joints:
        return False  # the key depends on the program, which has not been traced yet
    key = backends.code_key(recipe, "")
    return backends.known(key, _untraced, recipe.backend, recipe.dtype) is not None


def _untraced() -> Program:
    raise AssertionError("machine code of the CPU needs no program")
