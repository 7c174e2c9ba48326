"""Built-in robots: each function returns the description of a mechanism.

| function | what |
|---|---|
| `puma560` `stanford_arm` `microbot` | arms of the literature; their data files cite sources |
| `planar` `zigzag` | arms of equal rods in a vertical plane |
| `general_chain` | a serial arm in which no parameter is special: for counting operations |
| `quadruped` `humanoid` | legged machines with a floating base, of our own making |
| `random_tree` | a tree of every joint type, the same for the same seed |

`ROBOTS` is the same table for programs: a loop over it wraps or tests them all.
"""

from collections.abc import Callable

from chasles.model import Description
from chasles.robots.arms import microbot, puma560, stanford_arm
from chasles.robots.legged import humanoid, quadruped
from chasles.robots.synthetic import general_chain, planar, zigzag
from chasles.robots.trees import random_tree

ROBOTS: dict[str, Callable[..., Description]] = {
    robot.__name__: robot
    for robot in (
        puma560,
        stanford_arm,
        microbot,
        planar,
        zigzag,
        general_chain,
        quadruped,
        humanoid,
        random_tree,
    )
}
"""Every built-in robot by name."""

__all__ = [
    "ROBOTS",
    "general_chain",
    "humanoid",
    "microbot",
    "planar",
    "puma560",
    "quadruped",
    "random_tree",
    "stanford_arm",
    "zigzag",
]
