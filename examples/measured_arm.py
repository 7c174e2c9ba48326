"""Identification of a measured arm, a Stäubli TX40 with a coupled wrist.

The measurements are public: positions and torques of the six motors, 9 s at 5 kHz, in the folder
examples/staubli_TX40 of the repository thanhndv212/figaroh-examples on GitHub (Apache-2.0).
`python examples/measured_arm.py FOLDER [PICTURE]` identifies the arm from the subfolder `data` of
this folder. Without a folder, a similar log is simulated with the reference values.

Motor 6 drives joints 5 and 6 together: the motor's angle is the sum of the two joint angles. Motor
6 is modeled as a separate joint that is coupled to joints 5 and 6. Its friction and inertia then
act at this joint, and the measured torque needs no conversion.
"""

import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import chasles
from chasles.model import gear

JOINTS = tuple(f"joint_{k}" for k in range(1, 7))
MOTORS = (*JOINTS[:5], "motor_6")
RATIOS = np.array([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])  # motor turns per joint turn
OFFSETS = np.array([0.0, -np.pi / 2, np.pi / 2, 0.0, 0.0, 0.0])  # rad, where the motors are at 0
STEP = 2e-4  # sampling period, s

LINKS = (  # frame in the parent link (rpy, xyz), mass (kg), center of mass (m), Ixx, Iyy, Izz
    ((0.0, 0.0, 0.0), (0.0, 0.0, 0.32), 10.5, (0.0, 0.02, -0.043), (0.055, 0.047, 0.035)),
    ((-np.pi / 2, 0.0, 0.0), (0.0, 0.0, 0.0), 3.6, (0.109, -0.002, 0.134), (0.009, 0.038, 0.04)),
    ((0.0, 0.0, 0.0), (0.225, 0.0, 0.035), 4.07, (0.008, 0.006, 0.041), (0.012, 0.012, 0.004)),
    ((np.pi / 2, 0.0, 0.0), (0.0, -0.225, 0), 3.62, (-0.004, 0.002, -0.107), (0.013, 0.014, 4e-3)),
    ((-np.pi / 2, 0.0, 0.0), (0.0, 0.0, 0.0), 1.02, (-0.004, -0.003, -0.001), (1e-3, 1e-3, 1e-3)),
    ((np.pi / 2, np.pi, 0.0), (0.0, 0.0, 0.0), 0.2, (0.0, 0.0, 0.042), (5e-4, 5e-4, 2e-4)),
)  # fmt: skip
"""Nominal geometry and inertias of the arm, from the URDF file of the repository."""

DAMPING = (8.05, 5.53, 1.97, 1.11, 1.86 - 0.616, 0.65 - 0.616, 0.616)
FRICTION = (7.14, 8.26, 6.34, 2.48, 3.03, 0.282, 1.95)
"""Reference values (N m s/rad, N m) from the repository's configuration: joints 1 to 6, motor 6.

In the configuration, the damping of joints 5 and 6 includes the damping of motor 6, which is
subtracted here.
"""


def arm() -> chasles.Robot:
    """Return the arm with its nominal inertias, and a seventh joint for motor 6."""
    parts, parent = ['<robot name="tx40"><link name="base"/>'], "base"
    for k, (rpy, xyz, mass, center, (xx, yy, zz)) in enumerate(LINKS, 1):
        parts.append(
            f'<link name="link_{k}"><inertial><mass value="{mass}"/>'
            f'<origin xyz="{_words(center)}"/><inertia ixx="{xx}" iyy="{yy}" izz="{zz}" '
            f'ixy="0" ixz="0" iyz="0"/></inertial></link>{_joint(f"joint_{k}", parent, rpy, xyz)}'
        )
        parent = f"link_{k}"
    parts.append(f'<link name="rotor_6"/>{_joint("motor_6", "base")}</robot>')
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the rotor's inertia is unknown
        file = Path(folder, "tx40.urdf")
        file.write_text("".join(parts), "utf-8")
        tree = chasles.load(file)
    return tree.with_couplings(gear("wrist", "motor_6", {"joint_5": 1.0, "joint_6": 1.0}))


def _joint(name: str, parent: str, rpy: Any = (0, 0, 0), xyz: Any = (0, 0, 0)) -> str:
    child = name.replace("joint", "link").replace("motor", "rotor")
    return (
        f'<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin rpy="{_words(rpy)}" xyz="{_words(xyz)}"/><axis xyz="0 0 1"/></joint>'
    )


def _words(numbers: Any) -> str:
    return " ".join(map(str, numbers))


def measured(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return positions (n, 7) of all joints, and motor torques (n, 7) referred to the joints."""
    turns = np.loadtxt(folder / "data/pos_read_data.csv", delimiter=",", skiprows=1)
    torques = np.loadtxt(folder / "data/curr_data.csv", delimiter=",", skiprows=1) * RATIOS
    angles = turns / RATIOS + OFFSETS
    wrist = angles[:, 5] - angles[:, 4]
    q = np.column_stack([angles[:, :5], wrist, angles[:, 5]])
    return q, np.insert(torques, 5, 0.0, axis=1)


def simulated(robot: chasles.Robot) -> tuple[np.ndarray, np.ndarray]:
    """Return a simulated log: 2 s of a random motion, with noise in the torques."""
    rng, t = np.random.default_rng(0), STEP * np.arange(10_001)
    k = 2.0 * np.pi * np.arange(1, 6) / 2.0
    a = 0.4 * rng.normal(size=(5, 6)) / np.arange(1, 6)[:, None]
    waves = np.sin(np.outer(t, k)), np.cos(np.outer(t, k)) * k, -np.sin(np.outer(t, k)) * k**2
    q, qd, qdd = (np.column_stack([x @ a, (x @ a)[:, 4] + (x @ a)[:, 5]]) for x in waves)
    tau = robot.inverse_dynamics(q, qd, qdd, actuated=MOTORS)
    N = robot.with_independent(*MOTORS).complete(q[:, None, :], np.eye(6))
    dissipated = qd * DAMPING + np.sign(qd) * FRICTION
    tau[:, [0, 1, 2, 3, 4, 6]] += np.einsum("nij,nj->ni", N, dissipated)
    return q, tau + 0.5 * rng.normal(size=tau.shape) * np.array([1, 1, 1, 1, 1, 0, 1])


def draw(found: Any, t: np.ndarray, data: Any, picture: Any) -> None:
    """Draw measured torques, and predicted torques while the joints move."""
    import matplotlib.pyplot as plt

    q, qd, qdd, tau = data
    predicted = np.where(found.model.moving(q, qd), found.predict(q, qd, qdd), np.nan)
    figure, grid = plt.subplots(3, 2, figsize=(9.0, 6.0), sharex=True, layout="constrained")
    for k, axes in enumerate(grid.T.ravel()):
        row = k if k < 5 else 6
        axes.plot(t, tau[:, row], color="0.6", label="measured")
        axes.plot(t, predicted[:, k], "C0", linewidth=1.0, label="predicted")
        axes.set_ylabel(f"motor {k + 1} (N m)")
        axes.grid(alpha=0.3)
    grid[0, 0].legend(loc="upper right")
    for axes in grid[-1]:
        axes.set_xlabel("time (s)")
    figure.savefig(picture, dpi=100)
    plt.close(figure)


def main(folder: Any = None, picture: Any = None) -> None:
    robot = arm()
    q, tau = simulated(robot) if folder is None else measured(Path(folder))
    t = STEP * np.arange(len(q))
    terms = [
        f"{joint}.{kind}" for joint in robot.joints for kind in ("armature", "damping", "friction")
    ]
    terms += [f"{motor}.offset" for motor in MOTORS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # `notes` contains the warnings
        found = chasles.identify(
            robot, q=q, tau=tau, t=t, include=["inertia", *terms], actuated=MOTORS
        )
    print(found.notes[0])
    print(f"{len(found.base)} base parameters, condition number {found.condition:.0f}")
    print("joint     damping (N m s/rad)    friction (N m)")
    for k, joint in enumerate(robot.joints):
        damping, friction = (
            found.joint_terms[f"{joint}.{kind}"] for kind in ("damping", "friction")
        )
        print(f"{joint:8} {damping:8.2f} ({DAMPING[k]:.2f}) {friction:14.2f} ({FRICTION[k]:.2f})")
    if picture is not None:
        from chasles.identification.filtering import smoothed

        used = smoothed(t, q, tau)
        draw(found, used.t, (used.q, used.qd, used.qdd, used.tau), picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
