"""Export of a time step with contact as C code."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles.backends.c.body import Number
from chasles.backends.c.function import Function
from chasles.backends.c.iterated import Iteration
from chasles.errors import InputError
from chasles.expr import interpret
from chasles.functions.doors import numbers
from chasles.mechanisms.closing import assemble, coordinates
from chasles.model.given import checked_step
from chasles.motion.contract import Machine
from chasles.motion.controls import Controls
from chasles.motion.drivers.loops import FALLEN
from chasles.motion.drivers.stepping import TIME_STEPPING, Stepped, prepared
from chasles.motion.options import Plan
from chasles.motion.simulation import with_file
from chasles.motion.steps.backward import MOVING
from chasles.motion.steps.stepping import EFFORT, MOST, QUICK, ROUGH, STATISTICS, TOLERANCE

TIME_STEP = "time_step"
"""Name of the exported function."""

OPTIONS = ("dt", "contacts", "limits", "control", "ctrl", "q")
"""Options that `export` accepts for a time step, in addition to `dissipation`."""

PARTS = ("begin", "refine", "rescue", "end")

ERRORS = {"float64": 1e-6, "float32": 3e-2}
"""Error tolerances of the exported test by dtype, relative to the largest result. Because stiff
contacts amplify rounding errors, the relative errors of impulses are about 1e4 times those of
velocities."""


def exported_step(
    robot: Machine,
    stem: str,
    number: Number,
    *,
    own_sine: bool,
    dissipation: bool,
    count: int,
    dt: Any = None,
    contacts: Sequence[Any] | str = (),
    limits: bool | None = None,
    control: Any = None,
    ctrl: bool = False,
    q: Any = None,
) -> Iteration:
    """Return the time step as C code.

    For options that are not listed here, see `rollout`.

    Parameters
    ----------
    count : int
        Number of states in the exported test.
    ctrl : bool
        True if the step takes actuator controls instead of joint torques.
    q : array_like, shape (nq,), optional
        Configuration with closed loops, which determines the independent coordinates.
    """
    if dt is None:
        remedy = "pass the step size in s, for example dt=0.002"
        raise InputError("E-EXPORT-014", f"{TIME_STEP} needs a step size", remedy, part="export")
    if ctrl and control is not None:
        raise InputError("E-EXPORT-015", "pass `control` or `ctrl`, not both", part="export")
    lossy = dissipation or None
    plan = Plan(contacts=contacts, limits=limits, dissipation=lossy, integrator=TIME_STEPPING)
    law = Controls() if ctrl else control
    step = checked_step(dt, "export: dt")
    start = _start(robot, q)
    made = prepared(robot, with_file(robot, plan), step, law, start)
    if made.unseen is not None:
        problem = "contact with height fields cannot be exported to C"
        raise InputError(
            "E-EXPORT-017", problem, "omit the contact pairs with height fields", part="export"
        )
    told = STATISTICS if robot.mechanism.rows else EFFORT
    name, reports = f"{stem}_{TIME_STEP}", {"effort": len(told)}
    parts = [
        Function(f"{name}_{part}", "", made.program(part, number.dtype), number, own_sine, True)
        for part in PARTS
    ]
    kept = tuple(key for key in (*MOVING, "forces") if key in made.steps.states)
    tolerance = ROUGH if number.dtype == "float32" else TOLERANCE
    return Iteration(
        name,
        f"Take a time step of {step:g} s with contact, limits and dry friction (time stepping).",
        (parts[0], parts[1], parts[2], parts[3]),
        QUICK,
        MOST,
        kept,
        reports,
        (
            "forces: contact forces (N) on the bodies along the world axes, 3 per contact;",
            "those of the previous step predict friction: set them to zero before the first step",
            f"effort: solver statistics of this step ({', '.join(told)})",
            *_loops(robot, made),
            f"a step is solved if its residual is at most {tolerance:g} of the momentum",
            "a step starts from the velocities qd; only forces are kept between steps",
        ),
        _sample(robot, made, count, start),
        kept,
        ERRORS[number.dtype],
    )


def _start(robot: Machine, q: Any) -> np.ndarray:
    """Return `q`, or by default a configuration near the neutral one that closes the loops."""
    mechanism = robot.mechanism
    if q is not None:
        return numbers("export: q", q, robot.model.nq).astype(float)
    neutral = np.array(mechanism.neutral(), dtype=float)
    loops = mechanism.loops
    return assemble(loops, coordinates(loops, neutral), None) if mechanism.rows else neutral


def _loops(robot: Machine, made: Stepped) -> list[str]:
    """Return the comment lines about closed loops for the header of the exported code."""
    if not robot.mechanism.rows:
        return []
    names = ", ".join(robot.mechanism.loops.freedoms[k] for k in made.model.independent)
    return [
        f"q and qd must satisfy the loops; independent coordinates: {names}",
        f"singular: 1 at a singular position; above {1.0 - FALLEN:g} the result is not valid",
    ]


def _sample(robot: Machine, made: Stepped, count: int, start: np.ndarray) -> dict[str, np.ndarray]:
    """Return `count` states and inputs for the exported test.

    All values are exact in float32. A robot with a free joint touches the ground in these states.
    """
    model, rng, q = robot.model, np.random.default_rng(0), start.copy()
    gaps = interpret(made.gap_program(), {"q": q.tolist()})["gaps"] if made.slots else []
    free = [i for i in model.movers if model.bodies[i].data.traits.floating]
    if gaps and free:
        q[model.position_slices[free[0]].start + 6] -= min(gaps)
    found = {}
    for v in made.steps.inputs:
        scale = {"qd": 0.125, "ctrl": 0.125, "tau": 1.0}.get(v.name, 0.0)
        found[v.name] = np.round(1024.0 * scale * rng.normal(size=(count, v.size))) / 1024.0
    found["q"] = np.tile(q, (count, 1))
    return {name: rows.astype(np.float32).astype(float) for name, rows in found.items()}
