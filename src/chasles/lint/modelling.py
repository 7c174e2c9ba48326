"""Checks for modelling assumptions: rigid links, joint friction, rotor inertias and link frames.

The checks cover the sources of modelling errors and rounding errors that are visible in a file
(Featherstone 2008, section 10.1). docs/modelling.md contains the complete checklist.
"""

import math
from collections.abc import Iterator

from chasles.lint.sheet import Found, Sheet
from chasles.model.validate import FAR, far_frames

SLENDER = 50.0
"""Ratio of length to thickness above which a link is slender (for an equivalent uniform box)."""

REDUCTION = 10.0
"""Gear ratio above which the reflected rotor inertia is rarely negligible."""


def slender(sheet: Sheet) -> Iterator[Found]:
    """Find slender links, which may bend."""
    for link in sheet.links:
        if link.extended:
            assert link.mass is not None
            thin, _, long = (math.sqrt(12.0 * x / link.mass) for x in link.second_moments)
            if long > SLENDER * thin:
                what = (
                    f"the mass and moments of inertia match a box {long:.3g} m long "
                    f"and {thin * 1e3:.3g} mm thick"
                )
                yield link.found(what)


def far_frame(sheet: Sheet) -> Iterator[Found]:
    """Find links whose center of mass is many radii of gyration from the joint that moves them."""
    where = {link.name: link.where for link in sheet.links}
    for name, radii in far_frames(sheet.robot.model) if sheet.robot is not None else ():
        what = (
            f"the center of mass is {radii:.0f} radii of gyration from the joint (limit: {FAR:g})"
        )
        yield Found(f"link {name!r}", where.get(name, sheet.file), what)


def lossless(sheet: Sheet) -> Iterator[Found]:
    """Find joints with neither damping nor friction if other joints of the robot have either."""
    if sheet.robot is None:
        return
    moving = [x for x in sheet.robot.model.source.joints if x.traits.nv == 1 and x.mimic is None]
    bare = [x.name for x in moving if not x.damping and not x.friction]
    if 0 < len(bare) < len(moving):
        names = ", ".join(map(repr, bare[:4])) + ", ..." * (len(bare) > 4)
        what = f"{len(bare)} of {len(moving)} joints have neither damping nor friction: {names}"
        yield Found(f"robot {sheet.robot.name!r}", sheet.file, what)


def rotor(sheet: Sheet) -> Iterator[Found]:
    """Find geared joints without rotor inertia."""
    if sheet.robot is None:
        return
    joints = {joint.name: joint for joint in sheet.robot.model.source.joints}
    for where, name, ratio in sheet.reductions:
        joint = joints.get(name)
        if joint is not None and abs(ratio) >= REDUCTION and not joint.armature:
            what = (
                f"the gear ratio is {ratio:g}, but the armature is zero: the rotor inertia, "
                f"multiplied by {ratio**2:g}, is missing"
            )
            yield Found(f"joint {name!r}", where, what)
