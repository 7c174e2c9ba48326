"""Left and right: names that are twins, and bodies that are mirror images in any frames."""

from pathlib import Path

import numpy as np
import pytest
from lint_files import joint, link, urdf

from chasles.lint import lint
from chasles.lint.bodies import twins
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import matrix_from_quaternion


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("left_foot", "right_foot"),
        ("foot_left", "foot_right"),
        ("LeftFoot", "RightFoot"),
        ("LEFT_FOOT", "RIGHT_FOOT"),
        ("l_foot", "r_foot"),
        ("foot_L", "foot_R"),
        ("L_foot", "R_foot"),
        ("LHipYaw", "RHipYaw"),
        ("FL_hip", "FR_hip"),
        ("LF_HIP", "RF_HIP"),
        ("lh_foot", "rh_foot"),
        ("l_gripper_l_finger", "r_gripper_r_finger"),
    ],
)
def test_twins(left: str, right: str) -> None:
    assert list(twins([right, left, "base"])) == [(left, right)]


@pytest.mark.parametrize("names", [("link", "rink"), ("arm_1", "arm_2"), ("l1", "r2")])
def test_others_are_none(names: tuple[str, str]) -> None:
    assert not list(twins(names))


def turned(seed: int) -> np.ndarray:
    q = np.random.default_rng(seed).normal(size=4)
    return np.array(matrix_from_quaternion(Vector(tuple(q.tolist()))).rows)


@pytest.mark.parametrize("seed", range(5))
def test_a_mirror_image_in_another_frame_is_alike(seed: int, tmp_path: Path) -> None:
    """A body and its image in y = 0, in a rotated frame, are alike, but other images are not.

    Other images have another center of mass within the principal axes (as for a wrong sign), larger
    moments, or a center farther away.
    """
    rng = np.random.default_rng(seed)
    S = np.diag([0.01, 0.02, 0.06])
    R, Q, mirror = turned(seed), turned(seed + 100), np.diag([1.0, -1.0, 1.0])
    I = R @ (np.trace(S) * np.eye(3) - S) @ R.T
    c = R @ [0.2, 0.1, 0.0] + rng.uniform(0.0, 0.02, size=3)  # near the plane of the least moments
    image, center = Q @ mirror @ I @ mirror @ Q.T, Q @ mirror @ c
    slip = R @ [0.0, 0.1, 0.2]
    for moments, place, checks in (
        (image, center, set()),
        (image, Q @ mirror @ slip, {"left-right"}),
        (image * 1.3, center, {"left-right"}),
        (image, 1.3 * center, {"left-right"}),
    ):
        legs = (link("l_leg", inertial(I, c)), link("r_leg", inertial(moments, place)))
        joints = (joint("l_hip", "base", "l_leg"), joint("r_hip", "base", "r_leg"))
        (tmp_path / "legs.urdf").write_text(urdf(link("base"), *legs, *joints))
        assert {f.check for f in lint(tmp_path / "legs.urdf")} == checks


def inertial(I: np.ndarray, c: np.ndarray) -> str:
    xyz = " ".join(map(repr, c.tolist()))
    keys = {
        "ixx": (0, 0),
        "iyy": (1, 1),
        "izz": (2, 2),
        "ixy": (0, 1),
        "ixz": (0, 2),
        "iyz": (1, 2),
    }
    moments = " ".join(f'{key}="{float(I[at])!r}"' for key, at in keys.items())
    return f'<inertial><origin xyz="{xyz}"/><mass value="3"/><inertia {moments}/></inertial>'
