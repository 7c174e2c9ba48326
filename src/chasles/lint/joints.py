"""Checks for joints: connections, limits, loops and loading errors."""

import math
from collections.abc import Iterator

from chasles.errors import ConvergenceError, InputError
from chasles.lint.sheet import Found, Joint, Sheet
from chasles.model.description import part_of, traits
from chasles.model.given import like_degrees

_SLACK = 1e-6
"""Rounding tolerance for the limits of mimic joints (rad or m)."""

_TURN = 2.0 * math.pi


def number(sheet: Sheet) -> Iterator[Found]:
    """Find text where numbers are expected."""
    yield from sheet.faults


def recovered(sheet: Sheet) -> Iterator[Found]:
    """Find malformed XML and incomplete inertias from which the reader recovered."""
    yield from sheet.recovered


def misspelled(sheet: Sheet) -> Iterator[Found]:
    """Find unknown elements and attributes whose names are similar to known ones."""
    yield from sheet.misspelled


def refused(sheet: Sheet) -> Iterator[Found]:
    """Yield the errors raised when the file is loaded, at most one per line of the file."""
    yield from {found.where: found for found in reversed(sheet.refusals)}.values()


def unknown_link(sheet: Sheet) -> Iterator[Found]:
    """Find joints whose links do not exist."""
    names = {link.name for link in sheet.links}
    for joint in sheet.joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link and link not in names:
                yield joint.found(f"there is no {role} link {link!r}")


def unconnected(sheet: Sheet) -> Iterator[Found]:
    """Find links not connected to any joint; files without joints are not checked."""
    held = {name for joint in sheet.joints for name in (joint.parent, joint.child)}
    for link in sheet.links if any(held) else ():
        if link.name not in held and not (link.mass is None and link.name == "world"):
            yield link.found("no joint connects the link to the robot")


def reference(sheet: Sheet) -> Iterator[Found]:
    """Find transmissions and extensions that refer to missing joints or links."""
    joints, links = set(sheet.by_name), {link.name for link in sheet.links}
    known = {"joint": joints, "link": links, "part": joints | links}
    for where, who, kind, name in sheet.references:
        if name not in known[kind]:
            what = "joint or link" if kind == "part" else kind
            yield Found(who, where, f"there is no {what} {name!r}")


def mimic(sheet: Sheet) -> Iterator[Found]:
    """Find mimic joints that form a cycle, or whose leader is missing or fixed.

    Mimic joints with multiplier 0 are also reported.
    """
    for joint in sheet.joints:
        if joint.mimic is None:
            continue
        leader = sheet.by_name.get(joint.mimic.joint)
        if leader is None:
            yield joint.found(f"there is no joint {joint.mimic.joint!r} to mimic")
        elif leader.kind == "fixed":
            yield joint.found(f"the mimicked {leader.part} is fixed")
        elif _circle(sheet, joint):
            yield joint.found("the joint mimics itself through other mimic joints")
        elif joint.mimic.multiplier == 0.0:
            yield joint.found(f"the joint mimics {leader.part} with multiplier 0")


def _circle(sheet: Sheet, joint: Joint) -> bool:
    seen, at = {joint.name}, joint
    while at.mimic is not None:
        following = sheet.by_name.get(at.mimic.joint)
        if following is None or following.name in seen:
            return following is not None
        seen.add(following.name)
        at = following
    return False


def mimic_range(sheet: Sheet) -> Iterator[Found]:
    """Find mimic joints that exceed their limits while their leader is within its limits."""
    for joint in sheet.joints:
        leader = None if joint.mimic is None else sheet.by_name.get(joint.mimic.joint)
        if joint.mimic is None or leader is None or joint.range is None or leader.range is None:
            continue
        ends = sorted(joint.mimic.multiplier * x + joint.mimic.offset for x in leader.range)
        slack = _SLACK + 1e-3 * (joint.range[1] - joint.range[0])
        if ends[0] < joint.range[0] - slack or ends[1] > joint.range[1] + slack:
            what = f"the leader, {leader.part}, moves the joint from {ends[0]:.4g} to {ends[1]:.4g}"
            limits = f"the limits are {joint.range[0]:.4g} to {joint.range[1]:.4g}"
            yield joint.found(f"{what}, but {limits}")


def loop(sheet: Sheet) -> Iterator[Found]:
    """Find loops that cannot be closed, or that lock the mechanism."""
    if sheet.robot is None or not sheet.robot.model.constraints:
        return
    names = ", ".join(repr(each.name) for each in sheet.robot.model.constraints)
    try:
        freedoms = sheet.robot.mobility()
    except (InputError, ConvergenceError) as error:
        yield Found(f"loops {names}", sheet.file, error.fault)
        return
    if int(freedoms) == 0:
        yield Found(f"loops {names}", sheet.file, "the loops lock the mechanism")


def loop_start(sheet: Sheet) -> Iterator[Found]:
    """Find loops that are open in the neutral configuration."""
    if sheet.robot is None or not sheet.robot.model.constraints:
        return
    residual = abs(sheet.robot.loop_residual(sheet.robot.neutral()))
    if math.isfinite(residual.max()) and residual.max() > 1e-4:
        what = f"a loop has a gap of {residual.max():.3g} (m or rad) in the neutral configuration"
        yield Found(f"robot {sheet.robot.name!r}", sheet.file, what)


# Limits ---------------------------------------------------------------------------------------


def missing(sheet: Sheet) -> Iterator[Found]:
    """Find revolute and prismatic joints whose required limits are missing or incomplete."""
    for joint in sheet.joints if sheet.needs_limits else ():
        if joint.bounded:
            absent = [key for key in ("lower", "upper") if key not in joint.limits]
            if joint.place is None:
                yield joint.found(f"a {joint.kind} joint without <limit>")
            elif absent and joint.mimic is None:
                yield joint.found(f"no {' and no '.join(absent)} limit, which means 0")


def inverted(sheet: Sheet) -> Iterator[Found]:
    """Find joints whose lower limit is above their upper limit."""
    for joint, lower, upper in _ranges(sheet):
        if lower > upper:
            yield joint.found(f"lower limit {lower:g} is above the upper limit {upper:g}")


def empty(sheet: Sheet) -> Iterator[Found]:
    """Find joints with equal lower and upper limits."""
    for joint, lower, upper in _ranges(sheet):
        if lower == upper:
            yield joint.found(f"both limits are {lower:g}: the joint cannot move")


def negative(sheet: Sheet) -> Iterator[Found]:
    """Find negative values of quantities such as armature, damping and friction."""
    for entry in sheet.outside:
        if entry.row.lint == "negative":
            what = f"{entry.name} is {min(entry.numbers):g}"
            yield Found(part_of(entry.part), entry.place or sheet.file, what)


def powerless(sheet: Sheet) -> Iterator[Found]:
    """Find zero or negative effort and velocity limits; mimic joints are not checked."""
    for joint in sheet.joints:
        if joint.kind == "fixed" or traits(joint.kind).floating or joint.mimic is not None:
            continue
        for key in ("effort", "velocity"):
            if joint.limits.get(key, math.inf) <= 0.0:
                yield joint.found(f"the {key} limit is {joint.limits[key]:g}")


def degrees(sheet: Sheet) -> Iterator[Found]:
    """Find angles that look like degrees.

    Integer joint limits above 4 pi rad and orientation angles above 2 pi rad are reported.
    """
    for joint in sheet.joints:
        angles = [joint.limits.get(key, 0.0) for key in ("lower", "upper")]
        hinge = joint.bounded and traits(joint.kind).hinge
        if hinge and like_degrees(*angles):
            yield joint.found(f"limits {angles[0]:g} to {angles[1]:g} rad look like degrees")
        if any(abs(x) > 1.01 * _TURN for x in joint.angles):
            what = f"the origin is rotated by ({', '.join(f'{x:g}' for x in joint.angles)}) rad"
            yield joint.found(f"{what}, which looks like degrees")


def _ranges(sheet: Sheet) -> Iterator[tuple[Joint, float, float]]:
    for joint in sheet.joints:
        if joint.range is not None:
            yield joint, *joint.range
