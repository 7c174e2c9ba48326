"""Operations of methods against the number of joints."""

from collections.abc import Sequence
from typing import Any

from chasles.algorithms import METHODS
from chasles.errors import InputError, ModelError
from chasles.functions.doors import checked_options
from chasles.functions.programs import program
from chasles.plots.paper import Axes, finish, legend, new
from chasles.plots.subject import Subject, open_tree

FEW = 5
"""Methods whose names fit among the curves; those of more stand beside them."""


def cost(
    robot: Subject,
    function: str,
    methods: Sequence[str] | None,
    lengths: Sequence[int] | None,
    axes: Axes | None,
    options: dict[str, Any],
) -> Axes:
    """Multiplications and additions of each method, with only the first n joints free."""
    open_tree(robot, "cost", "joints that depend on each other cannot be counted one by one")
    checked_options(robot.model, function, options)
    known = [m.name for m in METHODS[function] if not m.steep]
    chosen = known if methods is None else list(methods)
    counts = range(1, len(robot.joints) + 1) if lengths is None else sorted(lengths)
    if not counts or not 1 <= counts[0] <= counts[-1] <= len(robot.joints):
        problem = f"lengths must be from 1 to {len(robot.joints)}, the number of joints"
        raise InputError("E-PLOT-001", problem)
    shorter = [_shortened(robot, n) for n in counts]
    named = methods is not None
    values = {m: [_count(part, function, m, named, options) for part in shorter] for m in chosen}
    possible = {m: found for m, found in values.items() if any(x is not None for x in found)}
    drawn = new(axes)
    for k, (method, found) in enumerate(possible.items()):
        heights = [x or float("nan") for x in found]  # none at all have no place on the axis
        drawn.plot(counts, heights, color=f"C{k % 10}", marker=".v^s"[k // 10 % 4], label=method)
    drawn.set_yscale("log")
    drawn.xaxis.get_major_locator().set_params(integer=True)
    beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    legend(drawn, **beside if len(possible) > FEW else {})
    return finish(drawn, f"{function} of {robot.name}", "joints", "multiplications and additions")


def _shortened(robot: Subject, n: int) -> Subject:
    """The robot with its first n joints free, and those after them held where they are neutral."""
    neutral = robot.neutral()
    held = {joint: neutral[robot.position_slice(joint)] for joint in robot.joints[n:]}
    found: Subject = robot.lock(held) if held else robot
    return found


def _count(
    robot: Subject, function: str, method: str, named: bool, options: dict[str, Any]
) -> int | None:
    """Operations for one state; None where a method is for other robots, unless it was named."""
    chosen = dict(checked_options(robot.model, function, options))
    try:
        return program(robot.model, function, method=method, **chosen).count.flops
    except ModelError:
        if named:
            raise
        return None
