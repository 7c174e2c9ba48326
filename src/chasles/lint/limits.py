"""Checks of limits: missing, inverted, empty, without force or speed, in degrees."""

import math
from collections.abc import Iterator

from chasles.lint.sheet import Found, Joint, Sheet
from chasles.model.joints import traits

_TURN = 2.0 * math.pi

_FEW_TURNS = 720.0
"""More, in degrees or rad, stands for no limit."""


def missing(sheet: Sheet) -> Iterator[Found]:
    """Revolute and prismatic joints without a limit or some of its numbers, where they need it."""
    for joint in sheet.joints if sheet.needs_limits else ():
        if joint.bounded:
            absent = [key for key in ("lower", "upper") if key not in joint.limits]
            if joint.place is None:
                yield Found(joint.part, joint.where, f"a {joint.kind} joint without <limit>")
            elif absent and joint.mimic is None:
                what = f"no {' and no '.join(absent)} limit, which means 0"
                yield Found(joint.part, joint.where, what)


def inverted(sheet: Sheet) -> Iterator[Found]:
    """The lower limit above the upper one."""
    for joint, lower, upper in _ranges(sheet):
        if lower > upper:
            what = f"lower limit {lower:g} is above the upper limit {upper:g}"
            yield Found(joint.part, joint.where, what)


def empty(sheet: Sheet) -> Iterator[Found]:
    """No room between the limits."""
    for joint, lower, upper in _ranges(sheet):
        if lower == upper:
            yield Found(joint.part, joint.where, f"both limits are {lower:g}: it cannot move")


def powerless(sheet: Sheet) -> Iterator[Found]:
    """Effort or velocity that is zero or negative, of joints that are not led by another."""
    for joint in sheet.joints:
        if joint.kind == "fixed" or traits(joint.kind).floating or joint.mimic is not None:
            continue
        for key in ("effort", "velocity"):
            if joint.limits.get(key, math.inf) <= 0.0:
                yield Found(joint.part, joint.where, f"its {key} limit is {joint.limits[key]:g}")


def degrees(sheet: Sheet) -> Iterator[Found]:
    """Angles that make sense in degrees only: whole numbers beyond two turns of a revolute joint,
    and places turned by more than a turn."""
    for joint in sheet.joints:
        angles = [joint.limits.get(key, 0.0) for key in ("lower", "upper")]
        if (
            joint.bounded
            and traits(joint.kind).hinge
            and any(2.0 * _TURN < abs(x) <= _FEW_TURNS and x == int(x) for x in angles)
        ):
            what = f"limits {angles[0]:g} to {angles[1]:g} rad look like degrees"
            yield Found(joint.part, joint.where, what)
        if any(abs(x) > 1.01 * _TURN for x in joint.angles):
            what = f"its place is turned by ({', '.join(f'{x:g}' for x in joint.angles)}) rad"
            yield Found(joint.part, joint.where, f"{what}, which looks like degrees")


def _ranges(sheet: Sheet) -> Iterator[tuple[Joint, float, float]]:
    for joint in sheet.joints:
        if joint.range is not None:
            yield joint, *joint.range
