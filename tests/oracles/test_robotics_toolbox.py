"""Compare with results of the Robotics Toolbox, which `robotics_toolbox.py` has stored."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import close

import chasles
from chasles.conventions import swap

THERE: dict[str, Any] = json.loads(Path(__file__).with_name("robotics_toolbox.json").read_text())
PAGE = Path(__file__).parents[2] / "docs/coming-from/robotics-toolbox.md"
AGREEMENT = 1e-12
Q, QD, QDD = np.array([0.3, -0.8]), np.array([1.0, 0.5]), np.array([0.2, -0.4])
BENT = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])


def arm() -> chasles.Robot:
    row = {"mass": 1.0, "center": (-0.5, 0.0, 0.0), "inertia": (0.0, 1 / 12, 1 / 12)}
    rows = [chasles.DHRow(0.0, 0.0, 1.0, 0.0, armature=100**2 * 1e-4, **row) for _ in range(2)]
    return chasles.from_dh(rows, convention="standard", gravity=(0.0, -9.81, 0.0))


def spatial(convention: Any) -> chasles.Robot:
    """Return the arm of `robotics_toolbox.py` with six axes.

    Moments are in the order xx yy zz xy xz yz; in the toolbox, it is xx yy zz xy yz xz.
    """
    rows = []
    for k in range(6):
        gear = 10.0 + k
        rows.append(
            chasles.DHRow(
                0.0,
                0.1 * k,
                0.3,
                0.5 - 0.3 * k,
                mass=1.0 + k,
                center=(0.1, -0.2 * k, 0.05),
                inertia=(0.3, 0.4, 0.5, 0.01, 0.03, 0.02),
                armature=1e-3 * gear**2,
                damping=1e-3 * k * gear**2,
                friction=0.02 * gear,
            )
        )
    return chasles.from_dh(rows, convention=convention)


def test_names_of_the_page_are_there() -> None:
    named = set(re.findall(r"`robot\.(\w+)\(", re.sub(r"\| [^|\n]*\|\n", "\n", PAGE.read_text())))
    assert named >= {"fkine", "rne", "inertia_x"}
    assert named <= set(THERE["signatures"])


def test_arm_of_the_page() -> None:
    robot, there = arm(), THERE["arm"]
    close(robot.inverse_dynamics(Q, QD, QDD), there["rne"], AGREEMENT)
    close(robot.mass_matrix(Q), there["inertia"], AGREEMENT)
    close(robot.coriolis_matrix(Q, QD) @ QD, np.array(there["coriolis"]) @ QD, AGREEMENT)
    close(robot.gravity_forces(Q), there["gravload"], AGREEMENT)
    close(robot.forward_dynamics(Q, QD, [1.0, 2.0]), there["accel"], AGREEMENT)
    close(robot.forward_kinematics(Q, frame="tool"), there["fkine"], AGREEMENT)
    J = robot.jacobian(Q, frame="tool")
    close(swap(J, axis=0), there["jacob0"], AGREEMENT)
    J = robot.jacobian(Q, frame="tool", axes="frame")
    close(swap(J, axis=0), there["jacobe"], AGREEMENT)
    J = robot.jacobian_rate(Q, QD, frame="tool")
    close(swap(J, axis=0), there["jacob0_dot"], AGREEMENT)
    H = robot.derivatives("jacobian", Q, frame="tool", wrt="q")
    close(np.moveaxis(swap(H, axis=0), -1, 0), there["hessian0"], AGREEMENT)


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_motors_and_friction(convention: str) -> None:
    """Motor inertia and viscous friction scale with the squared gear ratio.

    Coulomb friction scales with the ratio. Forward dynamics includes friction.
    """
    robot, there = spatial(convention), THERE[convention]
    smooth = robot.inverse_dynamics(BENT, BENT, BENT)
    close(smooth, there["frictionless"], AGREEMENT)
    lossy = robot.inverse_dynamics(BENT, BENT, BENT, dissipation=True)
    close(lossy, there["rne"], AGREEMENT)
    viscous = np.array([robot.joint(name).damping for name in robot.joints]) * BENT
    close(smooth + viscous, there["without coulomb"], AGREEMENT)
    rates = robot.forward_dynamics(BENT, BENT, np.ones(6), dissipation=True)
    close(rates, there["accel"], 1e-10)
    states = np.stack([BENT, -BENT])
    close(robot.inverse_dynamics(states, BENT, BENT, dissipation=True), there["rows"], AGREEMENT)


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_end_of_the_arm(convention: str) -> None:
    robot, there = spatial(convention), THERE[convention]
    J = robot.jacobian(BENT, frame="tool")
    lost = 1e-15 * np.linalg.cond(J) ** 2  # rounding errors on both sides
    close(np.sqrt(np.linalg.det(J @ J.T)), there["manipulability"], lost)
    Lambda, _ = chasles.control.operational_dynamics(robot, BENT, BENT, frame="tool")
    close(swap(swap(Lambda, axis=0), axis=1), there["inertia_x"], lost)


def test_puma() -> None:
    """The PUMA agrees, but its origin is at the base in the toolbox, and here at the shoulder."""
    robot, there = chasles.robots.puma560(), THERE["puma"]
    close(robot.mass_matrix(BENT), there["inertia"], AGREEMENT)
    apart = np.array(there["fkine"]) - robot.forward_kinematics(BENT, frame="tool")
    close(apart[:3, 3], [0.0, 0.0, 0.67183], AGREEMENT)
    close(apart[:3, :3], np.zeros((3, 3)), AGREEMENT, scale=1.0)


def test_conventions() -> None:
    w, x, *rest = THERE["quaternion"]
    close([w, x], [np.cos(0.15), np.sin(0.15)], AGREEMENT)
    assert rest == [0.0, 0.0]
    assert THERE["inertia"] == [[1, 4, 6], [4, 2, 5], [6, 5, 3]]  # xx yy zz xy yz xz
    assert THERE["gravity"] == [0.0, 0.0, -9.81]


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_payload_is_put_in_the_place_of_the_last_links_mass(convention: str) -> None:
    """`payload` replaces the mass of the last link; `attach` agrees only if it has no mass."""
    robot = spatial(convention)
    name = robot.bodies[-1]
    run = chasles.compile(robot, "mass_matrix", parameters=(f"{name}.mass", f"{name}.center"))
    link, row = (robot.forward_kinematics(BENT, frame=frame) for frame in (name, "dh6"))
    center = np.linalg.solve(link, row @ [0.0, 0.1, 0.2, 1.0])[:3]
    M = run(BENT, np.array(2.0), center)
    close(M, THERE[convention]["payload"], AGREEMENT)
