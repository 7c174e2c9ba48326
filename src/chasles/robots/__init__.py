"""Built-in robots. Each function returns a `chasles.Robot`.

| function | robot |
|---|---|
| `puma560` `stanford_arm` `microbot` | arms from the literature; data files cite their sources |
| `planar` `zigzag` | arms of equal rods in a vertical plane |
| `general_chain` `general_tree` | an arm and trees with general parameters, for operation counts |
| `quadruped` `humanoid` | legged robots with a floating base, designed for chasles |
| `slider_crank` `four_bar` `triangle` `five_bar` `six_bar` | planar mechanisms with closed loops |
| `stewart` `delta` | parallel robots |
| `random_tree` | a tree with all joint types, determined by a seed |

`installed()` lists robot files in other installed packages. `find(name)` returns the path to a
listed file, and `chasles.load(name)` loads it.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec

from chasles.formats.registry import find, installed
from chasles.model import Description
from chasles.names import similar
from chasles.robot import Robot
from chasles.robots import arms, legged, mechanisms, synthetic

P = ParamSpec("P")

ROBOTS: dict[str, Callable[..., Robot]] = {}
"""Functions that create the built-in robots, by robot name."""


def _robot(describe: Callable[P, Description]) -> Callable[P, Robot]:
    """Return a function that builds a robot from the description that `describe` returns.

    The new function is added to `ROBOTS`.
    """

    @functools.wraps(describe)
    def build(*args: P.args, **kwargs: P.kwargs) -> Robot:
        return Robot(describe(*args, **kwargs))

    build.__annotations__["return"] = Robot
    ROBOTS[describe.__name__] = build
    return build


puma560 = _robot(arms.puma560)
stanford_arm = _robot(arms.stanford_arm)
microbot = _robot(arms.microbot)
planar = _robot(synthetic.planar)
zigzag = _robot(synthetic.zigzag)
general_chain = _robot(synthetic.general_chain)
general_tree = _robot(synthetic.general_tree)
quadruped = _robot(legged.quadruped)
humanoid = _robot(legged.humanoid)
slider_crank = _robot(mechanisms.slider_crank)
four_bar = _robot(mechanisms.four_bar)
triangle = _robot(mechanisms.triangle)
five_bar = _robot(mechanisms.five_bar)
six_bar = _robot(mechanisms.six_bar)
stewart = _robot(mechanisms.stewart)
delta = _robot(mechanisms.delta)
random_tree = _robot(synthetic.random_tree)

if not TYPE_CHECKING:  # type checkers report unknown names themselves

    def __getattr__(name: str) -> Any:
        """Raise an AttributeError that suggests an installed or built-in robot."""
        problem = f"module {__name__!r} has no attribute {name!r}"
        if name.startswith("_"):
            raise AttributeError(problem)
        if any(robot.name.removesuffix("_robot") == name for robot in installed()):
            remedy = f"installed robots are loaded by name: chasles.load({name!r})"
        else:
            remedy = similar(name, ROBOTS) or "`chasles robots` lists all robots"
        raise AttributeError(f"{problem}; {remedy}")


__all__ = ["ROBOTS", "find", "installed", *ROBOTS]
