"""Draw the motion of mechanisms with closed loops, directly from their robot models.

Links are drawn as lines or polygons through their joints. Earlier positions are pale, joints that
close loops are orange, and paths of points are dotted. With a folder as argument, writes one
picture for each mechanism into it.
"""

import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import IO, Any, NamedTuple

import numpy as np

import chasles
from chasles.mathematics.linear import Vector

R = chasles.robots
Point = tuple[str, tuple[float, float, float]]
"""Name of a link, and coordinates (m) of a point in its frame."""


class Motion(NamedTuple):
    """Motion of a robot: positions q (n, nq), points whose paths are drawn, and plot options.

    `shown` is the number of positions to draw, and `flat` is True for planar mechanisms.
    """

    robot: chasles.Robot
    q: np.ndarray
    paths: tuple[Point, ...]
    shown: int = 6
    flat: bool = True
    size: tuple[float, float] = (6.4, 4.2)


def turn(start: float = 1.0, steps: int = 181) -> np.ndarray:
    """Return angles (steps, 1) over a whole turn."""
    return start + np.linspace(0.0, 2.0 * np.pi, steps)[:, None]


# The mechanisms ---------------------------------------------------------------------------------


def four_bar() -> Motion:
    robot = R.four_bar(1.0, 0.5, 0.9, 0.8)
    places = ((0.45, 0.0, 0.0), (0.45, 0.45, 0.0))
    return Motion(robot, followed(robot, turn()), tuple(("coupler", place) for place in places))


def slider_crank() -> Motion:
    robot = R.slider_crank(0.5, 1.0)
    return Motion(robot, followed(robot, turn()), (("rod", (0.5, 0.0, 0.0)),), size=(6.4, 2.6))


def triangle() -> Motion:
    robot, part = R.triangle(0.5, 0.7), np.linspace(0.0, 1.0, 101)[:, None]
    y = np.hstack([0.3 + 1.3 * part, -0.4 - 1.2 * part])
    return Motion(robot, followed(robot, y), (("forearm", (0.7, 0.0, 0.0)),), shown=5)


def five_bar() -> Motion:
    robot = R.five_bar()
    q = robot.assemble([2.2, 0.9])
    springs = np.array([30.0, 0.0, 30.0, 0.0])  # at the cranks, N m/rad, relaxed at q
    motion = chasles.simulate(
        robot,
        q,
        robot.complete(q, [5.0, 2.0]),
        duration=1.2,
        tau=lambda t, now, rates: springs * (q - now),
    )
    return Motion(robot, motion.q, (("left_coupler", (0.8, 0.0, 0.0)),), shown=5)


def six_bar() -> Motion:
    robot = R.six_bar()
    paths: tuple[Point, ...] = (("fifth", (0.6, 0.0, 0.0)), ("coupler", (0.9, 0.0, 0.0)))
    return Motion(robot, followed(robot, turn()), paths, shown=5)


def inclined_four_bar() -> Motion:
    """Return a motion with the rocker's axis tilted by 30 degrees, and a ball-in-tube joint."""
    source = R.four_bar(1.0, 0.5, 0.9, 0.8).model.source
    axis = Vector.of(0.0, -math.sin(math.radians(30.0)), math.cos(math.radians(30.0)))
    joints = (*source.joints[:2], replace(source.joints[2], axis=axis))
    ball = replace(source.loops[0], kind="sphere_in_cylinder")
    robot = chasles.Robot(replace(source, joints=joints, loops=(ball,)))
    return Motion(robot, followed(robot, turn()), (("coupler", (0.9, 0.0, 0.0)),), flat=False)


def stewart() -> Motion:
    robot, t = R.stewart(), turn(0.0, 61)
    legs = 0.12 * np.sin(t + 2.0 * np.pi / 3.0 * (np.arange(6) // 2)) + 0.08
    return Motion(robot, followed(robot, legs), (("platform", (0.0, 0.0, 0.0)),), 3, flat=False)


def delta() -> Motion:
    robot, t = R.delta(), turn(0.0, 61)
    arms = 0.3 + 0.35 * np.sin(t + 2.0 * np.pi / 3.0 * np.arange(3))
    return Motion(robot, followed(robot, arms), (("platform", (0.0, 0.0, 0.0)),), 3, flat=False)


MECHANISMS: dict[str, Callable[[], Motion]] = {
    "four_bar": four_bar,
    "slider_crank": slider_crank,
    "triangle": triangle,
    "five_bar": five_bar,
    "six_bar": six_bar,
    "inclined_four_bar": inclined_four_bar,
    "stewart": stewart,
    "delta": delta,
}


def followed(robot: chasles.Robot, y: np.ndarray) -> np.ndarray:
    """Return positions (n, nq) for y (n, independent), each with the previous one as guess."""
    q = [robot.assemble(y[0])]
    for here in y[1:]:
        q.append(robot.assemble(here, guess=q[-1]))
    return np.array(q)


# Drawing ----------------------------------------------------------------------------------------

ORIGIN = (0.0, 0.0, 0.0)
GROUND, DARK, LOOP, PATH = "0.6", "0.2", "tab:orange", "tab:red"
COLORS = ("tab:blue", "tab:green", "tab:purple", "tab:cyan", "tab:olive")


def outlines(robot: chasles.Robot, paths: tuple[Point, ...]) -> dict[str, np.ndarray]:
    """Return the points (n, 3) of each link, in drawing order: joints, traced points, far end.

    The far end of a link is twice as far from its frame as the center of mass, because all links of
    these mechanisms are uniform.
    """
    source = robot.model.source
    found: dict[str | None, list[Any]] = {link.name: [] for link in source.links}
    for link in source.links:
        _, center, _ = link.inertia.about_center()
        if any(center):
            found[link.name].append([2.0 * x for x in center])
    for joint in source.joints:
        if joint.kind != "free":
            found[joint.child].append(ORIGIN)
        if joint.kind not in ("free", "prismatic"):  # without a fixed point on their parent
            found[joint.parent].append(list(joint.pose.r))
    for loop in source.loops:
        found[loop.parent].append(list(loop.pose.r))
        found[loop.child].append(list(loop.child_pose.r))
    for name, place in paths:
        if any(place):
            found[name].append(place)
    return {str(name): ordered(np.array(places)) for name, places in found.items()}


def ordered(places: np.ndarray) -> np.ndarray:
    """Return the two ends of points (n, 3) on a line, or the points in order around a polygon."""
    away = places - np.mean(places, axis=0)
    _, size, axes = np.linalg.svd(away, full_matrices=False)
    along = away @ axes.T
    if len(places) < 3 or size[1] < 1e-9:
        return places[np.argsort(along[:, 0])][[0, -1]]
    around = places[np.argsort(np.arctan2(along[:, 1], along[:, 0]))]
    return np.vstack([around, around[:1]])


def located(robot: chasles.Robot, q: np.ndarray, link: str, places: Any) -> np.ndarray:
    """Return the world coordinates (..., n, 3) of points (n, 3) in a link's frame."""
    T = robot.forward_kinematics(q, frame=link)
    return np.asarray(places) @ np.swapaxes(T[..., :3, :3], -1, -2) + T[..., None, :3, 3]


def draw(motion: Motion, picture: str | IO[bytes]) -> None:
    """Draw earlier positions in pale colors, the last position, and the paths of points."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=motion.size, layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_subplot(projection=None if motion.flat else "3d")
    for link, place in motion.paths:
        path = located(motion.robot, motion.q, link, [place])[:, 0]
        stroke(axes, path, label="path", color=PATH, linestyle=":", linewidth=1.5)
        stroke(axes, path[-1:], color=PATH, marker=".", markersize=9)
    moments = np.linspace(0, len(motion.q) - 1, motion.shown + 1).astype(int)[1:]
    for k in moments[:-1]:
        mechanism(axes, motion, motion.q[k], alpha=0.2)
    mechanism(axes, motion, motion.q[-1], alpha=1.0)
    pad = 4.0 if motion.flat else 8.0
    if motion.flat:
        axes.set_aspect("equal")
        axes.grid(alpha=0.25)
    else:
        spans = [np.ptp(getattr(axes, f"get_{name}lim")()) for name in "xyz"]
        axes.set_box_aspect(spans, zoom=1.1)
        axes.set_zlabel("z, m", labelpad=pad)
        axes.locator_params(nbins=4)
    axes.set_xlabel("x, m", labelpad=pad)
    axes.set_ylabel("y, m", labelpad=pad)
    figure.legend(loc="outside left center", frameon=False, fontsize="small")
    figure.savefig(picture, dpi=100, bbox_inches="tight")


def mechanism(axes: Any, motion: Motion, q: np.ndarray, *, alpha: float) -> None:
    """Draw links, then joints, at one position (nq,); prismatic joints are thin lines."""
    robot, source = motion.robot, motion.robot.model.source
    at = partial(located, robot, q)
    roles = dict.fromkeys(map(role, robot.bodies))
    colors = dict(zip(roles, (GROUND, *COLORS), strict=False))
    for link, outline in outlines(robot, motion.paths).items():
        line = at(link, outline)
        marker = "s" if np.ptp(outline) == 0.0 else ""
        style = {"color": colors[role(link)], "marker": marker, "markersize": 10, "alpha": alpha}
        stroke(axes, line, label=role(link), linewidth=3.0, solid_joinstyle="round", **style)
    for joint in source.joints:
        if joint.kind == "prismatic":
            ends = [at(str(joint.parent), [ORIGIN]), at(joint.child, [ORIGIN])]
            stroke(axes, np.vstack(ends), color=DARK, linewidth=1.0, alpha=alpha, zorder=1)
        elif joint.kind != "free":
            dot(axes, at(joint.child, [ORIGIN]), "white", "joint", alpha)
    for loop in source.loops:
        ends = [at(str(loop.parent), [list(loop.pose.r)])]
        ends += [at(loop.child, [list(loop.child_pose.r)])]
        stroke(axes, np.vstack(ends), color=DARK, linewidth=1.0, alpha=alpha, zorder=1)
        dot(axes, ends[1], LOOP, "loop joint", alpha)


def dot(axes: Any, place: np.ndarray, color: str, label: str, alpha: float) -> None:
    style = {"markerfacecolor": color, "markeredgecolor": DARK, "markersize": 6, "alpha": alpha}
    stroke(axes, place, label=label, linestyle="", marker="o", zorder=3, **style)


def stroke(axes: Any, places: np.ndarray, *, label: str = "_", **style: Any) -> None:
    """Draw a line through points (n, 3); add its label to the legend once, unless it is pale."""
    known = {line.get_label() for line in axes.lines}
    fresh = label not in known and style.get("alpha", 1.0) == 1.0
    flat = axes.name != "3d"
    axes.plot(*(places[:, :2] if flat else places).T, label=label if fresh else "_", **style)


def role(link: str) -> str:
    """Return the name of a link without the number of its leg."""
    return re.split(r"\d", link)[0]


def main(pictures: Mapping[str, str | IO[bytes] | None]) -> None:
    """Print the mobility of each mechanism, and draw it if a file is given."""
    for name, picture in pictures.items():
        motion = MECHANISMS[name]()
        print(f"{name}: {motion.robot.mobility()}")
        if picture is not None:
            draw(motion, picture)


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else None
    main({name: folder and f"{folder}/mechanism_{name}.png" for name in MECHANISMS})
