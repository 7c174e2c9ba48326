"""A description as lint sees it: of formats whose files are read only as a whole."""

import math

import numpy as np

from chasles.lint.sheet import Joint, Link, Sheet
from chasles.model import Description, JointData, LinkData


def sheet(file: str, description: Description) -> Sheet:
    """Every link and every joint of the tree, with limits that are finite."""
    return Sheet(
        file,
        tuple(_link(link, description.massless) for link in description.links),
        tuple(map(_joint, description.joints)),
    )


def _link(link: LinkData, kinematic: bool) -> Link:
    m, c, I = link.inertia.about_center()
    moments = np.array(I.matrix().rows, dtype=float)
    moments[np.abs(moments) < 1e-12 * np.max(np.abs(list(link.inertia.I)), initial=0.0)] = 0.0
    none = not m and not np.any(moments)
    return Link(
        link.name,
        link.where,
        None if none else float(m),
        np.array(list(c), dtype=float),
        moments,
        meant_massless=link.massless or kinematic,
    )


def _joint(joint: JointData) -> Joint:
    given = {key: getattr(joint.limits, key) for key in ("lower", "upper", "effort", "velocity")}
    return Joint(
        joint.name,
        joint.where,
        joint.kind,
        joint.parent,
        joint.child,
        {key: x for key, x in given.items() if math.isfinite(x)},
        joint.mimic,
        tuple(map(float, joint.pose.r)),
    )
