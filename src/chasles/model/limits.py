"""Limits of leader joints, narrowed to keep their mimic joints within limits."""

import math
from dataclasses import replace

from chasles.model.description import Limits

_ROOM = 1e-9
"""Range of motion (rad or m) below which a joint is treated as immovable."""


def narrowed(leader: Limits, follower: Limits, ratio: float, offset: float) -> Limits | None:
    """Return a leader's limits, narrowed so that the mimic joint (follower) is within its limits.

    The follower's position is ratio * q + offset. The result is None if no position of the leader
    satisfies both limits, or if narrowing would make a movable leader immovable. If the
    follower's velocity limit is 0, it is ignored, because many files contain this value for joints
    without a motor. The follower's effort limit does not limit the leader: the generalized force of
    the leader's coordinate is the sum of the leader's effort and `ratio` times the follower's
    effort.
    """
    if ratio == 0.0:
        inside = follower.lower - _ROOM <= offset <= follower.upper + _ROOM
        return leader if inside else None
    ends = sorted((x - offset) / ratio for x in (follower.lower, follower.upper))
    lower, upper = max(leader.lower, ends[0]), min(leader.upper, ends[1])
    if upper - lower < min(_ROOM, leader.upper - leader.lower):
        return None
    speed = follower.velocity / abs(ratio) if follower.velocity else math.inf
    return replace(leader, lower=lower, upper=upper, velocity=min(leader.velocity, speed))
