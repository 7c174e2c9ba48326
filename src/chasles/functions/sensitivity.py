"""Derivatives of inverse-kinematics solutions, by the implicit function theorem.

At a solution, the errors e(q, g) are zero for the target parameters g. The errors, which include
those of the loop equations, remain zero if J dq = (de/dg) dg, where J = -de/dq. Coordinates at a
limit are fixed. The derivative is the minimum-norm solution dq = J^+ (de/dg) dg, which is a
Gauss-Newton step from the solution for a small change dg.
"""

from functools import partial
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import Kernel
from chasles.expr import RULES, Arena, Program, Variable, jacobian
from chasles.functions.programs import program
from chasles.functions.reaching import Task
from chasles.functions.targets import Posture
from chasles.model.spaces import size

RANK = 1e-9
"""Ratio to the largest singular value below which singular values count as zero."""


def solution_rates(
    task: Task,
    q: np.ndarray,
    goals: np.ndarray,
    weights: np.ndarray,
    movable: np.ndarray,
    limits: np.ndarray,
) -> np.ndarray:
    """Return derivatives (count, nq, parameters) of solutions with respect to target parameters.

    `q` (count, nq) contains the solutions. `weights` (1 or count, rows) contains the error weights,
    which have an effect only if no motion keeps all errors at zero. `movable` (nv,) is 0 for fixed
    coordinates, else 1. `limits` (count, nq) is nonzero for coordinates at a limit, which are
    fixed.
    """
    kernel, count = _compiled(task), len(q)
    J, by_goals, turn = (np.empty((count, *v.shape)) for v in kernel.interface.outputs)
    if not count:
        return np.empty((0, task.model.nq, task.numbers))
    flat = [a.reshape(count, -1) for a in (J, by_goals, turn)]
    kernel([np.ascontiguousarray(q), np.ascontiguousarray(goals)], flat)
    free = np.tile(movable, (count, 1))
    for i, k in task._places():
        free[:, i] *= limits[:, k] == 0
    scale = weights * np.where(task.lengths, 1.0 / size(task.model), 1.0)
    J[:, : task.rows] *= scale[..., None]
    rates = np.linalg.pinv(J * free[:, None], rcond=RANK)[..., : task.rows] * free[..., None]
    found: np.ndarray = turn @ (rates @ (by_goals * scale[..., None]))
    return found


def _compiled(task: Task) -> Kernel:
    own = any(joint.custom is not None for joint in task.model.source.joints)
    trace = partial(_traced, task)
    recipe = ("solution rates", *task.key, trace().hash if own else "")
    return backends.known(recipe, trace) or backends.compile(trace(), recipe=recipe)


def _traced(task: Task) -> Program:
    """Trace -d(errors)/dv, d(errors)/d(goals) and dq/dv, where v is a tangent-space step."""
    model = task.model
    q, goals = Variable("q", (model.nq,)), Variable("goals", (task.numbers,))
    v = Variable("v", (model.nv,))
    arena = Arena(RULES)
    symbols = {x.name: [arena.input(x.name, k) for k in range(x.size)] for x in (q, goals, v)}
    at = Posture(model, symbols["q"], arena)
    errors, rows = task._errors(at, symbols["goals"])
    closing = task._loops(at)[1]
    moved = program(model, "integrate").applied(symbols, arena)[0]
    whole = Variable("matrix", (len(rows) + len(closing), model.nv))
    matrix = [x for row in (*rows, *closing) for x in row]
    base = Program.from_outputs("errors", [q, goals], [(Variable("e", (task.rows,)), errors)])
    step = Program.from_outputs("step", [q, v], [(Variable("q", (model.nq,)), moved)])
    by_goals = jacobian(base, ["goals"]).applied(symbols, arena)[0]
    still: dict[str, list[Any]] = {"q": [*symbols["q"]], "v": [0.0] * model.nv}
    by_rates = jacobian(step, ["v"]).applied(still, arena)[0]
    outputs = [
        (whole, matrix),
        (Variable("by_goals", (task.rows, task.numbers)), by_goals),
        (Variable("by_rates", (model.nq, model.nv)), by_rates),
    ]
    return Program.from_outputs("solution_rates", [q, goals], outputs)
