"""World positions of contact points along a trajectory."""

from collections.abc import Sequence

import numpy as np

from chasles import backends
from chasles.backends.arrays import call
from chasles.expr import RULES, Arena, Program, Variable
from chasles.model import Model
from chasles.motion.contact.pairs import Pair, Placed
from chasles.motion.geometry.kinematics import symbols
from chasles.motion.steps.scene import Scene
from chasles.motion.steps.sharing import closest


def contact_points(
    model: Model, pairs: Sequence[Pair], q: np.ndarray, *, stepped: bool
) -> np.ndarray | None:
    """Return the contact points (..., points, 3) in the world (m) for configurations q (..., nq).

    Points are in the order of `Touching.forces`. Contacts that are computed outside the compiled
    step, such as those on height fields, come last in `Touching.forces`; their points are not
    returned. `stepped` is True for a trajectory of the integrator "time-stepping". For other
    integrators, the result is None if the points vary with the motion.
    """
    arena, n = Arena(RULES), model.nq
    given = symbols(arena, "q", (n,))
    if stepped:
        own, crowded = Scene(model, tuple(pairs)).spots(given)
        found = [spot.point for _, spot in own]
        for crowd in crowded:
            found += [slot.spot.point for slot in closest(crowd, lambda pair: 0.0)[0]]
    elif any(pair.varies for pair in pairs):
        return None
    else:
        still = np.zeros(model.nv)
        found = [spot.point for spot in Placed(model, tuple(pairs)).spots(arena, given, still)]
    output = (Variable("points", (len(found), 3)), np.ravel(found).tolist())
    program = Program.from_outputs("points", [Variable("q", (n,))], [output])
    points: np.ndarray = call(backends.compile(program, "numpy"), "contact_points", (q,))
    return points
