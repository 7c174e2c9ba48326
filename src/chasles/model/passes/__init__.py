"""Passes: changes of a model before an algorithm is traced, so that its program is shorter.

Each is a function from model to model and a row of `PASSES`. All but "frictionless" keep the
equation of motion. `programs.py` says which ones apply; `robot.explain` prints what each is worth.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from chasles.model.model import Model
from chasles.model.passes.frames import sparse_frames
from chasles.model.passes.inertias import by_moments, by_products, equivalent
from chasles.model.passes.parallel import summed_angles
from chasles.model.passes.rotors import still_rotors
from chasles.model.passes.units import natural_units


class Pass(NamedTuple):
    """A change of a model, and one line that explains it."""

    what: str
    apply: Callable[[Model], Model]


PASSES: dict[str, Pass] = {
    "frames": Pass("Slide and turn body frames so that more offsets are zero.", sparse_frames),
    "frictionless": Pass(
        "Leave out damping and friction, unless dissipation=True.", Model.frictionless
    ),
    "moments": Pass(
        "Give the parent the inertia that a joint does not feel; I_yy becomes zero.",
        partial(equivalent, choice=by_moments),
    ),
    "products": Pass(
        "Give the parent the inertia that a joint does not feel; no z z integral is left.",
        partial(equivalent, choice=by_products),
    ),
    "rotors": Pass("Describe round last bodies in axes that do not turn.", still_rotors),
    "units": Pass("Measure lengths in units of the most frequent offset.", natural_units),
    "parallel-axes": Pass("Turn bodies on parallel axes by the sum of the angles.", summed_angles),
}
"""In the order in which they apply."""


def applied(model: Model, passes: Iterable[str]) -> Model:
    """The model after the named passes, in the order of the table."""
    wanted = set(passes)
    assert wanted <= PASSES.keys(), f"no pass {wanted - PASSES.keys()}"
    for name, each in PASSES.items():
        if name in wanted:
            model = each.apply(model)
    return model
