"""Program that computes all closed-form inverse-kinematics solutions of an arm for a pose."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from chasles.expr import (
    RULES,
    Arena,
    Number,
    Program,
    Variable,
    absolute,
    atan2,
    cos,
    interpret,
    less,
    less_equal,
    maximum,
    minimum,
    select,
    sin,
)
from chasles.functions.chains import Displacement, Joint, Slide, meeting, parallel, snapped
from chasles.functions.closed_form import Branch, Unsuited, arm_angle, elbow, plane, wrist
from chasles.functions.programs import program
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.trigonometric import Angle
from chasles.model import Model

DISTINCT = 1e-4
"""Maximum difference in joint positions between solutions that count as equal (rad, or relative to
the arm size).
"""

BEYOND = 1e-9
"""Amount by which a posture may exceed a limit before it is rejected (rad, or relative to the arm
size).
"""

TRIALS, FOUND, EXACT = 6, 0.05, 1e-8
"""Number of random test configurations, and error limits for usable and exact closed forms.

A closed form must reproduce `TRIALS` configurations to within `FOUND`. The form counts as exact if
the median error is below `EXACT`. If axes intersect only approximately, the solutions are
approximate.
"""

TURN = 2.0 * math.pi


@dataclass(frozen=True)
class Form:
    """Closed form of the inverse kinematics of an arm.

    `kind` is "wrist" (three intersecting axes), "plane" (three parallel axes) or "elbow" (seven
    joints; the first three axes intersect, and so do the last three). `given` is the index of the
    redundant joint, which requires a given position, or None. For "elbow", the arm angle must be
    given instead, and `given` is the number of joints. `backward` is True if the chain is solved
    from its last joint. `first` is the index of the first of the three axes, not counting the
    redundant joint, and in reverse order if `backward` is True.
    """

    given: int | None
    backward: bool
    kind: str
    first: int


@dataclass(frozen=True, eq=False)
class Arm:
    """Chain of joints that carries a frame, with its joint axes and home pose.

    Lengths are in units of `size` (m). `columns` contains the index of each joint in q.
    """

    columns: tuple[int, ...]
    joints: tuple[Joint, ...]
    home: Displacement
    size: float

    def displacement(self, goal: Sequence[Number]) -> Displacement:
        """Return the displacement from the home pose to a goal pose.

        `goal` contains the rotation matrix by rows and the position in m.
        """
        R = Matrix(tuple(tuple(goal[3 * r : 3 * r + 3]) for r in range(3)))
        p = Vector(tuple(goal[9:])) * (1.0 / self.size)
        return Displacement(R, p) @ self.home.inverse


def arm(model: Model, frame: str) -> Arm | None:
    """Return the chain of a frame if it has six or seven revolute or prismatic joints, else None.

    Also return None if the chain does not reproduce the forward kinematics of the model.
    """
    single = {
        model.velocity_slices[i].start: model.position_slices[i].start
        for i in model.movers
        if model.bodies[i].joint.nq == model.bodies[i].joint.nv == 1
    }
    rest = np.array([x for i in model.movers for x in model.bodies[i].joint.neutral()], float)
    rest[list(single.values())] = 0.0
    J, (R, p) = _jacobian(model, frame, rest), _pose(model, frame, rest)
    moving = np.flatnonzero(np.abs(J).max(axis=0) > 1e-12)
    if len(moving) not in (6, 7) or not set(moving.tolist()) <= set(single):
        return None
    turning = np.linalg.norm(J[:3, moving], axis=0) > 0.5
    places = np.array([p + np.cross(J[:3, k], J[3:, k]) for k in moving])
    size = float(np.abs(places[turning] - p).max(initial=0.0)) or 1.0
    joints = []
    for number, (k, turns, place) in enumerate(zip(moving, turning, places / size, strict=True)):
        axis = J[:3, k] if turns else J[3:, k]
        joints.append(Joint(number, tuple(snapped(axis)), tuple(snapped(place)), not turns))
    home = Displacement(
        Matrix(tuple(tuple(snapped(row)) for row in R)), Vector(tuple(snapped(p / size)))
    )
    found = Arm(tuple(single[k] for k in moving.tolist()), tuple(joints), home, size)
    return found if _same(found, model, frame, rest) else None


def _jacobian(model: Model, frame: str, q: np.ndarray) -> np.ndarray:
    made = program(model, "jacobian", frame=frame)
    return _values(made, q).reshape(6, model.nv)


def _pose(model: Model, frame: str, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    T = _values(program(model, "forward_kinematics", frame=frame), q).reshape(4, 4)
    return T[:3, :3], T[:3, 3]


def _values(made: Program, q: np.ndarray) -> np.ndarray:
    return np.array(next(iter(interpret(made, {"q": q.tolist()}).values())))


def _same(chain: Arm, model: Model, frame: str, rest: np.ndarray) -> bool:
    """Return True if the chain and the model give the same pose in two random postures."""
    for trial in range(2):
        q = rest.copy()
        q[list(chain.columns)] = np.random.default_rng(trial).uniform(-1.0, 1.0, len(chain.columns))
        reached = chain.home
        for joint, column in zip(reversed(chain.joints), reversed(chain.columns), strict=True):
            reached = _by(joint, float(q[column]), chain.size) @ reached
        R, p = _pose(model, frame, q)
        if not (
            np.allclose(np.array(reached.R), R, atol=1e-9)
            and np.allclose(chain.size * np.array(tuple(reached.p)), p, atol=1e-9 * chain.size)
        ):
            return False
    return True


def _by(joint: Joint, position: Number, size: float) -> Displacement:
    """Return the displacement of a joint at a given position (rad or m)."""
    move = _move(joint, position, size)
    columns = [tuple(joint.turn(move, Vector(tuple(e)))) for e in np.eye(3).tolist()]
    return Displacement(Matrix(tuple(columns)).T, joint.shift(move, Vector.zero()))


def _move(joint: Joint, position: Number, size: float) -> Angle | Slide:
    if joint.slides:
        return Slide(position * (1.0 / size))
    return Angle(cos(position), sin(position))


# Closed forms -----------------------------------------------------------------------------------


def forms(chain: Arm, given: int | None = None) -> Iterator[Form]:
    """Yield the closed forms that apply to an arm.

    For an arm with seven joints, a closed form requires the arm angle or the position of one joint.
    `given` is the index of this joint. If `given` is None, the closed form for the arm angle comes
    first, followed by those for a given position of the last joint, the first joint and the others.
    Programs are shorter if the position of the last or first joint is given.
    """
    n = len(chain.joints)
    if n == 7 and given is None and _bends(chain.joints):
        yield Form(n, False, "elbow", 0)
    last = [n - 1, 0, *range(1, n - 1)] if given is None else [given]
    for given in [None] if n == 6 else last:
        joints = [
            joint if given is None or joint.number < given else _marked(joint)
            for joint in chain.joints
            if joint.number != given
        ]
        for backward in (False, True):
            row = joints[::-1] if backward else joints
            for first in (3, 1):
                if _meets(row[first : first + 3]):
                    yield Form(given, backward, "wrist", first)
            for first in (1, 0):
                if _parallel(row[first : first + 3]):
                    yield Form(given, backward, "plane", first)


def chosen(chain: Arm, given: int | None = None) -> tuple[Form | None, bool]:
    """Return the first closed form that reproduces random postures, and a flag: True if exact.

    Postures must be reproduced to within `FOUND`. An exact form has a median error below `EXACT`.
    If there is no such form, return None and False.
    """
    for form in forms(chain, given):
        try:
            away = sorted(_missed(chain, form, seed) for seed in range(TRIALS))
        except Unsuited:
            continue
        if away[-1] < FOUND:  # use the median, because one posture may be nearly singular
            return form, away[TRIALS // 2] < EXACT
    return None, False


def _missed(chain: Arm, form: Form, seed: int) -> float:
    """Return the error of a closed form for the pose of a random configuration.

    The error is the distance between this configuration and the nearest solution.
    """
    q = np.random.default_rng(seed).uniform(-2.0, 2.0, len(chain.joints))
    q *= [chain.size if joint.slides else 1.0 for joint in chain.joints]
    reached = chain.home
    for joint in reversed(chain.joints):
        reached = _by(joint, float(q[joint.number]), chain.size) @ reached
    goal = [x for row in reached.R.rows for x in row] + [x * chain.size for x in reached.p]
    given = 0.0
    if form.kind == "elbow":
        moves = [
            _move(joint, float(x), chain.size) for joint, x in zip(chain.joints, q, strict=True)
        ]
        angle = arm_angle(jointed(chain.joints), moves)
        given = math.atan2(angle.s, angle.c)
    elif form.given is not None:
        given = float(q[form.given])
    nearest = math.inf
    for branch in solutions(chain, form, goal, given):
        if all(move.real for _, move in branch):
            far = (_far(move, float(q[joint.number]), chain.size) for joint, move in branch)
            nearest = min(nearest, max(far))
    return nearest


def _far(move: Angle | Slide, position: float, size: float) -> float:
    if isinstance(move, Slide):
        return float(abs(move.t - position / size))
    return math.hypot(move.c - math.cos(position), move.s - math.sin(position))


def _marked(joint: Joint) -> Joint:
    return joint.displaced(Displacement.none(), 1)


def _meets(joints: Sequence[Joint]) -> bool:
    side_by_side = any(parallel(a, b) for a, b in pairwise(joints))
    return not side_by_side and meeting(joints) is not None


def _bends(joints: Sequence[Joint]) -> bool:
    """Return True if joint 4 is revolute, and axes 1 to 3 and axes 5 to 7 each meet at a point."""
    return _meets(joints[:3]) and _meets(joints[4:]) and not joints[3].slides


def _parallel(joints: Sequence[Joint]) -> bool:
    turn = not any(joint.slides for joint in joints)
    return turn and all(parallel(a, b) for a, b in pairwise(joints))


def solutions(chain: Arm, form: Form, goal: Sequence[Number], given: Number = 0.0) -> list[Branch]:
    """Return the closed-form solutions (up to eight) for a goal pose."""
    G, joints = chain.displacement(goal), list(chain.joints)
    if form.kind == "elbow":
        return elbow(jointed(joints), G, Angle(cos(given), sin(given)))
    if form.given is not None:
        held = joints.pop(form.given)
        by = _by(held, given, chain.size)
        before, after = joints[: form.given], joints[form.given :]
        if len(before) < len(after):  # displace the shorter part of the chain
            G, before = by.inverse @ G, [joint.displaced(by.inverse, 1) for joint in before]
        else:
            G, after = G @ by.inverse, [joint.displaced(by, 1) for joint in after]
        joints = before + after
    if form.backward:
        joints, G = [joint.reversed() for joint in reversed(joints)], G.inverse
    try:
        return _solved(joints, form, G)
    except ZeroDivisionError:  # two equations are linearly dependent
        raise Unsuited from None


def jointed(joints: Sequence[Joint]) -> list[Joint]:
    """Return the joints of a seven-joint arm, with their reference points moved along the axes.

    The new reference point is the shoulder for the first three joints and the wrist for the last
    three joints. The fourth joint is unchanged.
    """
    shoulder, wrist = meeting(joints[:3]), meeting(joints[4:])
    assert shoulder is not None
    assert wrist is not None
    ends = [shoulder] * 3 + [None] + [wrist] * 3
    pairs = zip(joints, ends, strict=True)
    return [joint if point is None else joint.through(point) for joint, point in pairs]


def _solved(joints: list[Joint], form: Form, G: Displacement) -> list[Branch]:
    if form.kind == "plane":
        if form.first == 0:
            joints = [joints[5].displaced(G, joints[5].block + 2), *joints[:5]]
        return plane(joints, G)
    if form.first == 1:
        ahead = [joint.displaced(G.inverse, joint.block + 2) for joint in joints[:4]]
        joints = joints[4:] + ahead
    point = meeting(joints[3:])
    assert point is not None
    return wrist([*joints[:3], *(joint.through(point) for joint in joints[3:])], G)


# Programs ---------------------------------------------------------------------------------------


Limits = tuple[np.ndarray, np.ndarray]
"""Lower and upper limits of the joints in a chain."""


def traced(chain: Arm, form: Form, lower: np.ndarray, upper: np.ndarray) -> Program:
    """Return the program that computes all closed-form postures for a goal pose.

    The inputs are `goal` (12) and, for an arm with seven joints, `given` (1): the redundant joint's
    position or the arm angle. The output `q` contains the joint positions of each branch. The
    output `found` contains the flags described in `postures`.
    """
    arena = Arena(RULES)
    goal = [arena.input("goal", k) for k in range(12)]
    inputs, given = [Variable("goal", (12,))], arena.input("given", 0)
    if form.given is not None:
        inputs.append(Variable("given", (1,)))
    q, found = postures(chain, form, (lower, upper), goal, given)
    shape, entries = (len(q), len(chain.joints)), [x for row in q for x in row]
    outputs = [(Variable("q", shape), entries), (Variable("found", shape[:1]), found)]
    return Program.from_outputs("branches", inputs, outputs)


def postures(
    chain: Arm, form: Form, limits: Limits, goal: Sequence[Number], given: Number
) -> tuple[list[list[Number]], list[Number]]:
    """Return the joint positions and a flag for each branch.

    The flag is 1 if the branch is real, within the limits (modulo full turns), and different from
    all earlier branches with flag 1. Otherwise, the flag is 0.
    """
    branches = solutions(chain, form, goal, given)
    q, real = [], []
    for branch in branches:
        row: list[Number] = [given] * len(chain.joints)
        flag: Number = 1.0
        for joint, move in branch:
            value, inside = _limited(joint, move, chain.size, *limits)
            row[joint.number] = value
            flag = flag * inside * move.real
        q.append(row)
        real.append(flag)
    found: list[Number] = []
    for k, branch in enumerate(branches):
        new = real[k]
        for before in range(k):
            new = select(found[before], new * (1.0 - _equal(branches[before], branch)), new)
        found.append(new)
    return q, found


def _limited(
    joint: Joint, move: Angle | Slide, size: float, lower: np.ndarray, upper: np.ndarray
) -> tuple[Number, Number]:
    """Return a joint position, and 1 if it is within the joint limits, else 0.

    If an angle is outside the limits, full turns are added or subtracted to bring it inside.
    """
    low, high = float(lower[joint.number]), float(upper[joint.number])
    if isinstance(move, Slide):
        value = move.t * size
        nearest = maximum(low, minimum(value, high))
        return nearest, less_equal(absolute(value - nearest), BEYOND * size)
    angle = atan2(move.s, move.c)
    value, inside = angle, 0.0
    for turns in _turns(low, high):
        other = angle + turns * TURN
        nearest = maximum(low, minimum(other, high))
        fits = less_equal(absolute(other - nearest), BEYOND)
        value = select(inside, value, nearest)
        inside = select(inside, inside, fits)
    return value, inside


def _turns(low: float, high: float) -> list[int]:
    """Return the numbers of full turns that can shift an angle in [-pi, pi] into the limits.

    The numbers closest to zero come first. The list ends at the first number of turns that shifts
    all of [-pi, pi] into the limits.
    """
    found = []
    for turns in sorted(range(-_MOST, _MOST + 1), key=abs):
        a, b = -math.pi + turns * TURN, math.pi + turns * TURN
        if b + BEYOND < low or a - BEYOND > high:
            continue
        found.append(turns)
        if low <= a and b <= high:
            break
    return found


_MOST = 64
"""Maximum number of full turns to try in either direction."""


def _equal(a: Branch, b: Branch) -> Number:
    """Return 1 if two branches are equal modulo full turns, else 0."""
    close: Number = 1.0
    for (_, x), (_, y) in zip(a, b, strict=True):
        if isinstance(x, Slide):
            assert isinstance(y, Slide)
            close = close * less(absolute(x.t - y.t), DISTINCT)
        elif x is not y:
            assert isinstance(y, Angle)
            close = close * less(1.0 - 0.5 * DISTINCT**2, x.c * y.c + x.s * y.s)
    return close
