"""Program that computes all closed-form postures and checks them by forward kinematics."""

from chasles.expr import (
    RULES,
    Arena,
    Number,
    Program,
    Variable,
    absolute,
    equal,
    less_equal,
    maximum,
    select,
)
from chasles.functions.branches import Arm, Form, Limits, postures
from chasles.functions.targets import Pose, Posture
from chasles.model import Model


def checked_branches(model: Model, frame: str, chain: Arm, form: Form, limits: Limits) -> Program:
    """Return the program that computes all closed-form postures for a goal pose.

    The inputs are goal (12), base (nq), tolerances (6) and fill (2). `goal` contains the rotation
    matrix by rows and the position. `base` contains the coordinates outside the chain and the
    redundant joint's position. `tolerances` contains the limits for the three angular and the three
    linear components of the pose error. `fill` contains two fill values for rows without a
    posture: one for the coordinates and one for the residuals.

    The outputs are q (branches, nq), residual (branches, 2) and counts (2). Each row of `q` is a
    posture within the tolerances, or a fill value. `residual` contains the largest angular and
    linear error of each posture. `counts` contains two counts: postures within the tolerances, and
    postures that were rejected because they exceed the tolerances.
    """
    arena = Arena(RULES)
    sizes = (("goal", 12), ("base", model.nq), ("tolerances", 6), ("fill", 2))
    inputs = [Variable(name, (n,)) for name, n in sizes]
    goal, base, tolerances, fill = ([arena.input(v.name, k) for k in range(v.size)] for v in inputs)
    given = 0.0 if form.given is None else base[chain.columns[form.given]]
    rows, missed, met = [], 0.0, []
    programs: dict[tuple[str, str], Program] = {}
    for joints, found in zip(*postures(chain, form, limits, goal, given), strict=True):
        q = list(base)
        for column, position in zip(chain.columns, joints, strict=True):
            q[column] = position
        errors, _ = Pose(None).errors(Posture(model, q, arena, programs), frame, goal)
        fine: Number = found
        for error, tolerance in zip(errors, tolerances, strict=True):
            fine = fine * less_equal(absolute(error), tolerance)
        missed = missed + (found - fine)
        met.append(fine)
        rows.append([*q, _largest(errors[:3]), _largest(errors[3:])])
    nothing = [fill[0]] * model.nq + [fill[1]] * 2
    ordered, count = _gathered(rows, met, nothing)
    n, nq = len(rows), model.nq
    outputs = [
        (Variable("q", (n, nq)), [x for row in ordered for x in row[:nq]]),
        (Variable("residual", (n, 2)), [x for row in ordered for x in row[nq:]]),
        (Variable("counts", (2,)), [count, missed]),
    ]
    return Program.from_outputs("checked branches", inputs, outputs)


def _largest(errors: list[Number]) -> Number:
    found = absolute(errors[0])
    for error in errors[1:]:
        found = maximum(found, absolute(error))
    return found


def _gathered(
    rows: list[list[Number]], flags: list[Number], nothing: list[Number]
) -> tuple[list[list[Number]], Number]:
    """Move the rows with flag 1 to the front; return the new list and the number of these rows.

    These rows keep their order. The rest of the list is filled with copies of `nothing`.
    """
    before: list[Number] = [0.0]
    for flag in flags:
        before.append(before[-1] + flag)
    found = []
    for j in range(len(rows)):
        chosen = nothing
        for i in range(j, len(rows)):
            here = flags[i] * equal(before[i], float(j))
            chosen = [select(here, new, old) for new, old in zip(rows[i], chosen, strict=True)]
        found.append(chosen)
    return found, before[-1]
