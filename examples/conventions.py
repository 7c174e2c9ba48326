"""Draw the figures of the conventions page, one for each term that libraries define differently.

All arrows show values computed by chasles. Run with the name of a folder to save the figures there.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import chasles
from chasles import conventions

WORLD, BODY, RED = "#444444", "#1f77b4", "#d62728"
ARM = chasles.robots.planar(2).with_gravity((0.0, 0.0, 0.0))  # moves in the x-z plane
Q, QD = np.array([0.9, -0.7]), np.array([0.5, 0.4])
TIP = ARM.frames[-1]


def main(folder: str = "", names: tuple[str, ...] = ()) -> None:
    for name in names or tuple(FIGURES):
        figure = FIGURES[name]()
        if folder:
            figure.savefig(Path(folder, f"convention_{name}.png"), dpi=100)
        print(name, "drawn")
        import matplotlib.pyplot as plt

        plt.close(figure)


# Drawing ---------------------------------------------------------------------------------------


def panels(count: int, titles: tuple[str, ...], width: float = 3.2):
    """Return a figure with axes next to each other, with equal scales and without ticks."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, count, figsize=(width * count, 3.1), layout="constrained", squeeze=False
    )
    for panel, title in zip(axes[0], titles, strict=True):
        panel.set_title(title, fontsize=10)
        panel.set_aspect("equal")
        panel.axis("off")
        panel.margins(0.15)
    return figure, axes[0]


def arrow(panel, start, vector, color: str, label: str = "") -> None:
    """Draw a vector in the plane, with a label at its end."""
    start, end = np.asarray(start), np.asarray(start) + vector
    panel.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": color, "lw": 2})
    panel.plot(*zip(start, end, strict=True), alpha=0.0)  # the axis limits include it
    if label:
        panel.annotate(label, end, (4, 3), textcoords="offset points", color=color, fontsize=9)


def axes_of(panel, R, origin, color: str, name: str, size: float = 0.35) -> None:
    """Draw a frame in the plane: its two labeled axes."""
    for k, letter in enumerate("xz"):
        arrow(panel, origin, size * R[:, k], color, f"{letter} {name}" if k == 0 else letter)


def body(panel, points) -> None:
    """Draw a link as a thick line through points."""
    panel.plot(*np.asarray(points).T, lw=9, color="#cccccc", solid_capstyle="round", zorder=0)


def plane(T) -> tuple[np.ndarray, np.ndarray]:
    """Return rotation and origin of a pose in the x-z plane."""
    return T[np.ix_([0, 2], [0, 2])], T[[0, 2], 3]


def arm(panel) -> tuple[np.ndarray, np.ndarray]:
    """Draw the arm with the world frame and the tip frame; return the pose of the tip."""
    elbow, tip = (plane(ARM.forward_kinematics(Q, frame=name)) for name in ("link2", TIP))
    body(panel, [(0.0, 0.0), elbow[1], tip[1]])
    axes_of(panel, np.eye(2), np.zeros(2), WORLD, "world")
    axes_of(panel, *tip, BODY, "frame")
    return tip


# The figures -----------------------------------------------------------------------------------


def jacobian():
    """Draw the velocity of the tip at different points and along different axes."""
    cases = {
        'axes="world", at="frame"\nLOCAL_WORLD_ALIGNED': {"axes": "world", "at": "frame"},
        'axes="frame", at="frame"\nLOCAL': {"axes": "frame", "at": "frame"},
        'axes="world", at="world"\nWORLD': {"axes": "world", "at": "world"},
    }
    figure, row = panels(3, tuple(cases))
    for panel, options in zip(row, cases.values(), strict=True):
        R, p = arm(panel)
        v = (ARM.jacobian(Q, frame=TIP, **options) @ QD)[[3, 5]]
        turn = R if options["axes"] == "frame" else np.eye(2)
        start = p if options["at"] == "frame" else np.zeros(2)
        arrow(panel, start, turn @ v, RED, f"({v[0]:.2f}, {v[1]:.2f})")
    return figure


def body_velocity():
    """Draw the velocity of a free joint in chasles and in other libraries."""
    robot = chasles.robots.quadruped()
    angle = 0.6
    q = robot.neutral()
    q[:4] = np.cos(angle / 2), 0.0, -np.sin(angle / 2), 0.0
    qd = np.zeros(robot.nv)
    qd[[3, 5]] = 0.8, 0.3
    there = conventions.mujoco(robot).to_velocity(q, qd)[[0, 2]]
    titles = (
        "chasles, Pinocchio:\nalong the body's own axes",
        "MuJoCo, Drake:\nalong the world's axes",
    )
    figure, row = panels(2, titles)
    R = plane(robot.forward_kinematics(q, frame="trunk"))[0]
    for panel, numbers, axes in zip(row, (qd[[3, 5]], there), (R, np.eye(2)), strict=True):
        body(panel, [-0.3 * R[:, 0], 0.3 * R[:, 0]])
        axes_of(panel, np.eye(2), np.array([-0.9, -0.6]), WORLD, "world")
        axes_of(panel, R, np.zeros(2), BODY, "body")
        arrow(panel, np.zeros(2), axes @ numbers, RED, "v = ({:.2f}, 0, {:.2f})".format(*numbers))
    return figure


def quaternion():
    """Draw the order of the coordinates of a free joint and of a ROS message."""
    rows = {
        "chasles, Drake": "w x y z | X Y Z",
        "MuJoCo": "X Y Z | w x y z",
        "Pinocchio": "X Y Z | x y z w",
        "ROS (pose)": "X Y Z | x y z w",
    }
    figure, (panel,) = panels(1, ("quaternion w x y z and position X Y Z, in order",), width=6.4)
    for k, (name, letters) in enumerate(rows.items()):
        panel.text(-0.2, -k, name, ha="right", va="center")
        for j, letter in enumerate(letters.replace("| ", "").split()):
            color = RED if letter == "w" else BODY if letter.islower() else "#999999"
            panel.text(
                0.4 + 0.7 * j, -k, letter, ha="center", va="center", color="white",
                bbox={"boxstyle": "round,pad=0.35", "fc": color, "ec": "none"},
            )  # fmt: skip
    panel.set(xlim=(-2.6, 5.4), ylim=(-3.7, 0.7))
    panel.set_aspect("auto")
    return figure


def inertia():
    """Draw the moment of inertia about the center of mass and about the frame's origin."""
    link = ARM.model.source.links[-1]
    m, c, Ic = link.inertia.about_center()
    center = np.array([c[0], c[2]])
    titles = (
        f"files, parameters: about the center\nIyy = {Ic.yy:.4f} kg m2",
        f"spatial inertia: about the origin\nIyy = {link.inertia.I.yy:.4f} = Ic + m c c",
    )
    figure, row = panels(2, titles, width=3.6)
    for panel, place in zip(row, (center, np.zeros(2)), strict=True):
        body(panel, [(0.0, 0.0), (1.0, 0.0)])
        axes_of(panel, np.eye(2), np.zeros(2), BODY, "frame", 0.25)
        panel.plot(*place, "o", color=RED, ms=9)
        panel.annotate(f"m = {m:g} kg", center, (0, -18), textcoords="offset points")
        angle = np.linspace(0.3, 5.5, 60)
        panel.plot(place[0] + 0.2 * np.cos(angle), place[1] + 0.2 * np.sin(angle), color=RED)
    return figure


def rpy():
    """Draw roll, pitch and yaw about the fixed axes x, y, z in this order; R = Rz Ry Rx."""
    import matplotlib.pyplot as plt

    from chasles.homogeneous import position_from_angles

    angles = np.radians([40.0, 30.0, 50.0])
    steps = ("roll 40 about x", "then pitch 30 about the fixed y", "then yaw 50 about the fixed z")
    figure = plt.figure(figsize=(9.6, 3.3), layout="constrained")
    for k, title in enumerate(steps):
        panel = figure.add_subplot(1, 3, k + 1, projection="3d")
        panel.set_title(title, fontsize=10)
        used = np.where(np.arange(3) <= k, angles, 0.0)
        R = np.asarray(position_from_angles("xyz", used, axes="fixed"))[:3, :3]
        for axis, letter in enumerate("xyz"):
            panel.quiver(0, 0, 0, *np.eye(3)[axis], color="#bbbbbb", arrow_length_ratio=0.1)
            panel.quiver(0, 0, 0, *R[:, axis], color=(RED, "#2ca02c", BODY)[axis], lw=2)
            panel.text(*(1.15 * R[:, axis]), letter)
        panel.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
        panel.set_axis_off()
    return figure


def spatial():
    """Draw the linear velocity of one motion at the frame's origin and at the world's origin."""
    figure, row = panels(
        2, ("hybrid: velocity at\nthe frame's origin", "spatial: velocity at\nthe world's origin")
    )
    for panel, at in zip(row, ("frame", "world"), strict=True):
        _, p = arm(panel)
        v = ARM.frame_velocity(Q, QD, frame=TIP, at=at)
        start = p if at == "frame" else np.zeros(2)
        center = start + np.array([v[5], -v[3]]) / v[1]  # v + w x r is zero here
        panel.plot(*center, "x", color=RED)
        panel.plot(*zip(center, start, strict=True), ":", color=RED)
        arrow(panel, start, v[[3, 5]], RED, "v")
        panel.annotate("at rest", center, (5, -10), textcoords="offset points", color=RED)
    return figure


def joint_frame():
    """Draw a joint frame in its parent link, and the child frame for two joint angles."""
    figure, row = panels(
        2, ("q = 0: child frame = joint frame", "q = 0.7 about the joint's y axis")
    )
    origin = np.array([1.0, 0.2])
    for panel, q in zip(row, (0.0, 0.7), strict=True):
        R = np.array([[np.cos(q), np.sin(q)], [-np.sin(q), np.cos(q)]])
        body(panel, [(0.0, 0.0), origin])
        body(panel, [origin, origin + R @ [0.8, 0.0]])
        axes_of(panel, np.eye(2), np.zeros(2), WORLD, "parent")
        axes_of(panel, np.eye(2), origin, "#999999", "joint" if q else "")
        axes_of(panel, R, origin, BODY, "child")
        arrow(panel, np.zeros(2), origin, RED, "")
        panel.annotate("origin", 0.4 * origin, (0, 12), textcoords="offset points", color=RED)
    return figure


FIGURES: dict[str, Callable] = {
    "jacobian": jacobian,
    "body_velocity": body_velocity,
    "quaternion": quaternion,
    "inertia": inertia,
    "rpy": rpy,
    "spatial": spatial,
    "joint_frame": joint_frame,
}

if __name__ == "__main__":
    main(*sys.argv[1:2])
