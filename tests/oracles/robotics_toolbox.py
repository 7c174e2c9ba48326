"""Write results of the Robotics Toolbox to `robotics_toolbox.json`. This is not a test.

pip install "roboticstoolbox-python==1.4.4" "numpy<2"; python tests/oracles/robotics_toolbox.py
"""

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import roboticstoolbox
from roboticstoolbox import DHRobot, RevoluteDH, RevoluteMDH, models
from spatialmath import UnitQuaternion

STATE = {"q": [0.3, -0.8], "qd": [1.0, 0.5], "qdd": [0.2, -0.4]}
BENT = {"q": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}
NAMES = (
    "fkine jacob0 jacobe jacob0_dot hessian0 rne accel inertia coriolis gravload inertia_x fdyn "
    "payload nofriction manipulability ikine_LM"
)


def arm() -> Any:
    """Return the arm of docs/coming-from/robotics-toolbox.md."""
    link = {"a": 1.0, "m": 1.0, "r": [-0.5, 0, 0], "I": [0, 1 / 12, 1 / 12, 0, 0, 0]}
    motor = {"Jm": 1e-4, "G": 100}
    links = [RevoluteDH(alpha=0, **link, **motor) for _ in range(2)]
    return DHRobot(links, name="arm", gravity=[0, -9.81, 0])


def spatial(modified: bool) -> Any:
    """Return an arm with six axes and motor friction, as in `test_robotics_toolbox.py`."""
    make, links = (RevoluteMDH if modified else RevoluteDH), []
    for k in range(6):
        mass = {"m": 1.0 + k, "r": [0.1, -0.2 * k, 0.05], "I": [0.3, 0.4, 0.5, 0.01, 0.02, 0.03]}
        motor = {"Jm": 1e-3, "G": 10.0 + k, "B": 1e-3 * k, "Tc": [0.02, -0.02]}
        links.append(make(d=0.1 * k, a=0.3, alpha=0.5 - 0.3 * k, **mass, **motor))
    return DHRobot(links)


def numbers() -> dict[str, Any]:
    q, qd, qdd = (np.array(STATE[name]) for name in ("q", "qd", "qdd"))
    robot, puma, bent = arm(), models.DH.Puma560(), np.array(BENT["q"])
    return {
        "arm": {
            "rne": robot.rne(q, qd, qdd),
            "inertia": robot.inertia(q),
            "coriolis": robot.coriolis(q, qd),
            "gravload": robot.gravload(q),
            "fkine": robot.fkine(q).A,
            "jacob0": robot.jacob0(q),
            "jacobe": robot.jacobe(q),
            "jacob0_dot": robot.jacob0_dot(q, qd),
            "hessian0": robot.hessian0(q),
            "accel": robot.accel(q, qd, np.array([1.0, 2.0])),
        },
        "standard": six(spatial(modified=False)),
        "modified": six(spatial(modified=True)),
        "quaternion": UnitQuaternion.Rx(0.3).vec,
        "inertia": np.asarray(RevoluteDH(I=[1, 2, 3, 4, 5, 6]).I),
        "gravity": puma.gravity,
        "puma": {"inertia": puma.inertia(bent), "fkine": puma.fkine(bent).A},
    }


def six(robot: Any) -> dict[str, Any]:
    """Return results with and without friction, with a payload, and the operational inertia."""
    q = np.array(BENT["q"])
    found = {
        "rne": robot.rne(q, q, q),
        "accel": robot.accel(q, q, np.ones(6)),
        "without coulomb": robot.nofriction().rne(q, q, q),
        "frictionless": robot.nofriction(coulomb=True, viscous=True).rne(q, q, q),
        "rows": robot.rne(np.stack([q, -q]), np.stack([q, q]), np.stack([q, q])),
        "manipulability": robot.manipulability(q),
        "inertia_x": robot.inertia_x(q, representation=None),
    }
    robot.payload(2.0, [0.0, 0.1, 0.2])
    return found | {"payload": robot.inertia(q)}


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return np.asarray(value).tolist()


if __name__ == "__main__":
    words = {name: str(inspect.signature(getattr(DHRobot, name))) for name in NAMES.split()}
    known = {"version": roboticstoolbox.__version__, "signatures": words}
    text = json.dumps(known | plain(numbers()), indent=1)
    Path(__file__).with_suffix(".json").write_text(text + "\n")
