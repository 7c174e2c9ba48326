"""How all points of contact of a robot move, from one compiled function of its frames."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from chasles import backends
from chasles.backends.arrays import call
from chasles.contact.dynamics import contact_axes
from chasles.contact.geometry import Surface, check_pair
from chasles.contact.pairs import Pair
from chasles.expr import RULES, Arena, Number, Program, Variable
from chasles.model import Description, Model
from chasles.programs import program
from chasles.robot import Robot

POSE, TWIST, BIAS = slice(0, 16), slice(16, 22), slice(22, 28)
"""Where a frame's pose, velocity and acceleration at qdd = 0 lie in its row; the Jacobian follows.
"""

CROSS = np.array(
    [[0, 0, 0, 0, 0, -1, 0, 1, 0], [0, 0, 1, 0, 0, 0, -1, 0, 0], [0, -1, 0, 1, 0, 0, 0, 0, 0]],
    dtype=float,
)


class Moves(NamedTuple):
    """The points of contact of one state, in the order of the pairs, k of them.

    gap (k,), in m. axes (k, 3, 3): tangent, tangent and normal as rows, in the world. Along these,
    of the body relative to the surface: velocity (k, 3) = J qd, J (k, 3, nv), and the acceleration
    J qdd + bias (k, 3), whose normal part is that of the gap.
    """

    gap: np.ndarray
    axes: np.ndarray
    velocity: np.ndarray
    J: np.ndarray
    bias: np.ndarray

    def of(self, which: np.ndarray) -> "Moves":
        """Some of the points."""
        return Moves(*(part[which] for part in self))


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the code: the mechanism and the names of frames."""

    source: Description
    mimic: bool
    frames: tuple[str, ...]
    program: str = ""


class Points:
    """The points of contact of some pairs, of a robot in one state.

    They are those of `contact_points`, and move as `touch` says; one compiled function gives the
    motion of all frames, and what remains is done for all points together.
    """

    def __init__(self, robot: Robot, pairs: Sequence[Pair]) -> None:
        for pair in pairs:
            check_pair("simulate", pair.body, pair.surface)
        balls = [(pair, *ball) for pair in pairs for ball in pair.body.balls()]
        self._robot = robot
        self._at = np.array([at for _, at, _ in balls], dtype=float).reshape(-1, 3)
        self._radius = np.array([radius for *_, radius in balls], dtype=float)
        carriers = [(pair.body.frame, pair.surface.frame) for pair, *_ in balls]
        named = sorted({name for two in carriers for name in two if name is not None})
        self._frames = tuple(robot.model.frame(name).name for name in named)
        place = {name: k for k, name in enumerate((None, *named))}
        self._over, self._under = (
            np.array([place[two[side]] for two in carriers], dtype=int) for side in (0, 1)
        )
        self._surfaces = _grouped([pair.surface for pair, *_ in balls])
        self._rest = np.zeros((1, BIAS.stop + 6 * robot.nv))
        self._rest[0, POSE] = np.eye(4).ravel()
        model, own = robot.model, any(j.custom is not None for j in robot.model.source.joints)
        traced = frames_program(model, self._frames).hash if own else ""
        self._kernel = backends.prepare(
            Recipe(model.source, robot._mimic, self._frames, traced),
            lambda: frames_program(model, self._frames),
        )

    def __call__(self, t: float, q: np.ndarray, qd: np.ndarray) -> Moves:
        """Where the points are at a time and how they move."""
        moved = call(self._kernel, "contact", (q, qd, t))
        rows = np.concatenate([self._rest, moved])
        over, under = rows[self._over], rows[self._under]
        to_center = (_turn(over) @ self._at[:, :, None])[..., 0]
        center = _origin(over) + to_center
        rate = _velocity(over, to_center)
        gap, n, turn = self._nearest(under, center, rate)
        normal = (_turn(under) @ n[:, :, None])[..., 0]
        normal_rate = (_turn(under) @ turn[:, :, None])[..., 0]
        normal_rate += _crossed(under[:, TWIST][:, :3], normal)
        point = center - self._radius[:, None] * normal
        point_rate = rate - self._radius[:, None] * normal_rate
        v, J, a = (
            x - y
            for x, y in zip(
                _motion(over, point, point_rate), _motion(under, point, point_rate), strict=True
            )
        )
        E = contact_axes(normal)
        bias = (E @ a[:, :, None])[..., 0]
        bias[:, 2] += np.sum(normal_rate * v, axis=-1)
        return Moves(gap - self._radius, E, (E @ v[:, :, None])[..., 0], E @ J, bias)

    def _nearest(
        self, under: np.ndarray, center: np.ndarray, rate: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`Surface.nearest` of each point's own surface, in that surface's frame."""
        r = center - _origin(under)
        R = np.swapaxes(_turn(under), -1, -2)
        c = (R @ r[:, :, None])[..., 0]
        v = (R @ (rate - _velocity(under, r))[:, :, None])[..., 0]
        gap, n, turn = np.empty(len(r)), np.empty_like(r), np.empty_like(r)
        for surface, those in self._surfaces:
            gap[those], n[those], turn[those] = surface.nearest(c[those], v[those])
        if np.isnan(n).any():
            raise ValueError("simulate: two centres coincide, so that no normal is nearest")
        return gap, n, turn


def frames_program(model: Model, frames: Sequence[str]) -> Program:
    """A row for each frame, of q, qd and t: pose, velocity, acceleration at qdd = 0, Jacobian."""
    arena = Arena(RULES)
    sizes = {"q": model.nq, "qd": model.nv}
    given: dict[str, list[Number]] = {
        name: [arena.input(name, k) for k in range(n)] for name, n in sizes.items()
    }
    given |= {"t": [arena.input("t", 0)], "qdd": [0.0] * model.nv}
    rows: list[Number] = []
    for frame in frames:
        for name in ("forward_kinematics", "frame_velocity", "frame_acceleration", "jacobian"):
            found = program(model, name, frame=frame)
            values = found.replay(given, arena)
            rows += [values[r] for r in found.results[0]]
    inputs = [*(Variable(name, (n,)) for name, n in sizes.items()), Variable("t", ())]
    shape = (len(frames), BIAS.stop + 6 * model.nv)
    return Program.from_outputs("contact_frames", inputs, [(Variable("rows", shape), rows)])


def _grouped(surfaces: Sequence[Surface]) -> list[tuple[Surface, np.ndarray]]:
    """Each different surface with the numbers of its points."""
    different = list(dict.fromkeys(surfaces))
    return [
        (one, np.array([k for k, other in enumerate(surfaces) if other == one]))
        for one in different
    ]


def _turn(rows: np.ndarray) -> np.ndarray:
    return rows[:, POSE].reshape(-1, 4, 4)[:, :3, :3]


def _origin(rows: np.ndarray) -> np.ndarray:
    return rows[:, 3:12:4]


def _velocity(rows: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Of a frame's points at r from its origin."""
    return rows[:, 19:22] + _crossed(rows[:, 16:19], r)


def _motion(
    rows: np.ndarray, point: np.ndarray, rate: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Velocity, Jacobian and acceleration at qdd = 0 of the body's points that pass the contacts.

    The contacts move on at their own rate, and the acceleration is that of whichever point is there
    (see `touch`).
    """
    r, w, v = point - _origin(rows), rows[:, 16:19], rows[:, 19:22]
    alpha, a = rows[:, 22:25], rows[:, 25:28]
    J = rows[:, BIAS.stop :].reshape(len(rows), 6, -1)
    at_point = J[:, 3:] - _skew(r) @ J[:, :3]
    return v + _crossed(w, r), at_point, a + _crossed(alpha, r) + _crossed(w, rate - v)


def _skew(a: np.ndarray) -> np.ndarray:
    """a x, as matrices (k, 3, 3)."""
    return (a @ CROSS).reshape(-1, 3, 3)


def _crossed(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    product: np.ndarray = (_skew(a) @ b[:, :, None])[..., 0]
    return product
