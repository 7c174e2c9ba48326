"""Robot and contact parameters that are inputs of a time step.

For the names of robot parameters, see `chasles.model.parameters`. The contact parameters are:

| name | shape | description |
|---|---|---|
| `contacts.friction` | (pairs,) | coefficient of sliding friction of each contact pair |
| `contacts.stiffness` | (pairs,) | stiffness of each pair with the law `Compliant`, N/m |
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from chasles.errors import ModelError
from chasles.expr import Number
from chasles.model import Description, Model
from chasles.model.parameters import shape
from chasles.motion.contact.pairs import Compliant, Pair
from chasles.motion.geometry.closed_forms import sqrt
from chasles.motion.steps.algebra import dot
from chasles.motion.steps.bodies import NO_OWN, Own
from chasles.motion.steps.slots import meeting
from chasles.motion.steps.touching import Coefficients

MODEL = "model_parameters"
"""Name of the input array of a step that contains robot and contact parameters."""

FRICTION, STIFFNESS = "contacts.friction", "contacts.stiffness"
"""Names of the contact parameters: coefficients of friction, and stiffnesses."""


def parameter_shape(source: Description, pairs: Sequence[Any], name: Any) -> tuple[int, ...]:
    """Return the shape of a robot or contact parameter."""
    if name not in (FRICTION, STIFFNESS):
        return shape(source, name)
    if not all(isinstance(pair, Pair) and meeting(pair.body, pair.surface) for pair in pairs):
        problem = f"{name} is not supported with height fields"
        remedy = "set the coefficient in the contact law of each pair instead"
        raise ModelError("E-MOTION-205", problem, remedy, part="model_parameters")
    rigid = [pair for pair in pairs if not isinstance(pair.law, Compliant)]
    if name == STIFFNESS and rigid:
        problem = f"{name} requires the law Compliant for all pairs, not {rigid[0].law!r:.60}"
        remedy = "give each pair the law contact.Compliant(...)"
        raise ModelError("E-MOTION-206", problem, remedy, part="model_parameters")
    return (len(pairs),)


class Parameters(NamedTuple):
    """Robot and contact parameters that are inputs of a step.

    Attributes
    ----------
    places : dict[str, slice]
        Slice of each parameter in the input `MODEL`, by name.
    pairs : tuple[Pair, ...]
        Contact pairs, in the order of the contact parameters.
    """

    places: dict[str, slice]
    pairs: tuple[Pair, ...]

    @staticmethod
    def of(model: Model, pairs: Sequence[Pair], names: Sequence[str]) -> "Parameters":
        """Return the layout of an input array that contains the parameters with the given names."""
        sizes = [math.prod(parameter_shape(model.source, pairs, name)) for name in names]
        ends = np.cumsum([0, *sizes]).tolist()
        places = {name: slice(*ends[k : k + 2]) for k, name in enumerate(names)}
        return Parameters(places, tuple(pairs))

    @property
    def size(self) -> int:
        """Number of entries in the input `MODEL`, which contains the robot parameters."""
        return max((place.stop for place in self.places.values()), default=0)

    def of_model(self, values: Any) -> Own:
        """Return the values of the robot parameters by name.

        `values` is the input `MODEL`, or None if there are no parameters.
        """
        if values is None:
            return NO_OWN
        places = self.places.items()
        return {n: values[at] for n, at in places if n not in (FRICTION, STIFFNESS)}

    def coefficients(self, values: Any, pair: Pair) -> Coefficients | None:
        """Return the friction and stiffness of a pair if at least one is an input, else None."""
        if not {FRICTION, STIFFNESS} & set(self.places):
            return None
        k = next(k for k, known in enumerate(self.pairs) if known is pair)
        usual = {FRICTION: pair.law.friction, STIFFNESS: getattr(pair.law, "stiffness", 0.0)}
        found = {n: values[self.places[n]][k] for n in usual if n in self.places}
        return Coefficients(*(usual | found).values())

    def fall(self, model: Model, own: Mapping[str, Any]) -> Number:
        """Return the magnitude of the gravitational acceleration (m/s2)."""
        if "gravity" in own:
            return sqrt(dot(own["gravity"], own["gravity"]))
        return float(np.linalg.norm([*model.gravity_vector]))
