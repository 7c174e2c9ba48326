"""The functions of one model, each compiled once for a set of options."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from chasles.backends.pool import COMPILING
from chasles.errors import InputError
from chasles.functions.compiled import Compiled, Recipe
from chasles.functions.doors import checked_options
from chasles.functions.programs import Derivative
from chasles.functions.tracing import WrenchKey
from chasles.model import Model, build
from chasles.model.description import Closure
from chasles.model.parameters import shape


class Functions:
    """Compiles functions of a model, and keeps them."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._made: dict[tuple[Any, ...], Compiled] = {}

    def __call__(
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
        """The compiled function with these options, made once."""
        chosen = checked_options(self.model, function, options)
        for name in parameters:
            shape(self.model.source, name)
        if dtype not in ("float64", "float32"):
            raise InputError("E-ROBOT-023", f"dtype must be 'float64' or 'float32', not {dtype!r}")
        free = tuple(dict.fromkeys(parameters))
        key = (function, method, backend, dissipation, wrenches, chosen, derivative, free, dtype)
        found = self._made.get(key)
        if found is not None:
            return found
        with COMPILING:
            found = self._made.get(key)
            if found is None:
                recipe = Recipe(self.model.source, self.model.mimics, *key)
                found = self._made[key] = Compiled(recipe, self.model)
        return found

    def closed(self, closure: Closure) -> "Functions":
        """The functions of the model with a choice of its loops' equations."""
        source = replace(self.model.source, closure=closure)
        return Functions(build(source, mimic=self.model.mimics))
