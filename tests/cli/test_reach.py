"""`chasles reach`: configurations for given poses, in files that other commands read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import chasles
from chasles.cli import app

ROBOT = chasles.robots.puma560()
Q = np.array([0.3, 0.5, -1.0, 0.2, 0.9, -0.4])


def run(*words: Any, status: int = 0) -> str:
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == status, result.output
    return result.stdout


def answer(*words: Any, status: int = 0) -> dict[str, Any]:
    return json.loads(run("reach", "puma560", *words, "--json", status=status))


def code(said: str) -> str:
    """Return the code of the error that a command printed."""
    return str(json.loads(said)["error"]["code"])


def text(numbers: Any) -> str:
    return ",".join(repr(float(x)) for x in numbers)


def quaternion(R: np.ndarray) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    return np.roll(Rotation.from_matrix(R).as_quat(), 1)


def test_a_position_alone() -> None:
    found = answer("--pose", "0.4,0.2,0.3")
    assert found["solved"] is True
    place = ROBOT.forward_kinematics(found["q"], frame="tool")[:3, 3]
    np.testing.assert_allclose(place, [0.4, 0.2, 0.3], atol=1e-6)


@pytest.mark.parametrize("spelled", ["quaternion", "angles"])
def test_a_pose_and_all_its_solutions(spelled: str) -> None:
    from scipy.spatial.transform import Rotation

    T = ROBOT.forward_kinematics(Q, frame="tool")
    turn = Rotation.from_matrix(T[:3, :3])
    turned = quaternion(T[:3, :3]) if spelled == "quaternion" else turn.as_euler("xyz")
    found = answer("--frame", "tool", "--pose", text([*T[:3, 3], *turned]), "--all")
    q = np.array([row for row, good in zip(found["q"], found["solved"], strict=True) if good])
    assert np.abs(q - Q).max(axis=1).min() < 1e-5
    np.testing.assert_allclose(
        ROBOT.forward_kinematics(q, frame="tool"), np.broadcast_to(T, (len(q), 4, 4)), atol=3e-6
    )


def test_out_of_reach_is_said_and_is_the_exit_status() -> None:
    found = answer("--pose", "4,0,0", status=1)
    assert found["solved"] is False
    assert found["residual"][1] > 3.0
    assert "not reached" in run("reach", "puma560", "--pose", "4,0,0", status=1)


def path(folder: Path, far: bool = False) -> tuple[Path, np.ndarray]:
    """Write a straight path of the tool; return the file and the positions."""
    start = ROBOT.forward_kinematics(Q, frame="tool")
    points = start[:3, 3] + np.linspace(0.0, 0.05, 21)[:, None] * [0.0, 1.0, -1.0]
    if far:
        points[7] = 5.0
    rows = [[0.1 * k, *point, *quaternion(start[:3, :3])] for k, point in enumerate(points)]
    file = folder / "path.csv"
    lines = [",".join(map(repr, map(float, row))) for row in rows]
    file.write_text("\n".join(["t,x,y,z,qw,qx,qy,qz", *lines]) + "\n", "utf-8")
    return file, points


def test_a_path_is_followed_and_read_by_the_command_for_motions(tmp_path: Path) -> None:
    poses, points = path(tmp_path)
    table = tmp_path / "postures.csv"
    found = answer("--poses", poses, "--guess", text(Q), "-o", table)
    q = np.array(found["q"])
    assert all(found["solved"])
    np.testing.assert_allclose(q[0], Q, atol=1e-5)
    assert np.abs(np.diff(q, axis=0)).max() < 0.1  # no jump to another branch
    np.testing.assert_allclose(
        ROBOT.forward_kinematics(q, frame="tool")[:, :3, 3], points, atol=1e-6
    )
    moved = json.loads(run("motion", "puma560", table, "--differentiate", "--json"))
    assert moved["samples"] == 21
    run("reach", "puma560", "--poses", poses, "-o", table, status=2)  # the file already exists
    run("reach", "puma560", "--poses", poses, "-o", table, "--overwrite")


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_tables_of_poses_are_read_from_binary_files(tmp_path: Path, suffix: str) -> None:
    """The poses are those of the .csv file; a file of another type is refused without its bytes."""
    poses, _ = path(tmp_path)
    names, *rows = [line.split(",") for line in poses.read_text().splitlines()]
    columns = dict(zip(names, np.array(rows, dtype=float).T, strict=True))
    other = tmp_path / f"poses{suffix}"
    if suffix == ".npz":
        np.savez(other, **columns)
    else:
        arrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), other)
    found, wanted = (answer("--poses", file, "--guess", text(Q)) for file in (other, poses))
    np.testing.assert_array_equal(found["q"], wanted["q"])
    other.write_bytes(b"\x00\x01PAR1")
    said = run("reach", "puma560", "--poses", other, status=2)
    assert "\\x01" not in said


def test_a_posture_that_misses_its_pose_is_no_motion(tmp_path: Path) -> None:
    poses, _ = path(tmp_path, far=True)
    table = tmp_path / "postures.csv"
    found = answer("--poses", poses, "--guess", text(Q), "-o", table, status=1)
    assert [k for k, good in enumerate(found["solved"]) if not good] == [7]
    assert "20 of 21" in run("reach", "puma560", "--poses", poses, status=1)
    said = run("motion", "puma560", table, "--differentiate", "--json", status=2)
    assert code(said) == "E-FILE-084"
    table = tmp_path / "postures.parquet"
    answer("--poses", poses, "--guess", text(Q), "-o", table, status=1)
    said = run("motion", "puma560", table, "--differentiate", "--json", status=2)
    assert code(said) == "E-FILE-414"
    assert "row 7 " in said


def test_poses_without_times_are_solved_independently(tmp_path: Path) -> None:
    q = ROBOT.random(np.random.default_rng(3), size=200)
    points = ROBOT.forward_kinematics(q, frame="tool")[:, :3, 3]
    file = tmp_path / "points.csv"
    np.savetxt(file, points, fmt="%.17g", delimiter=",", header="x,y,z", comments="")
    table = tmp_path / "postures.parquet"
    found = answer("--poses", file, "-o", table)
    at = ROBOT.forward_kinematics(np.array(found["q"]), frame="tool")[:, :3, 3]
    np.testing.assert_allclose(at, points, atol=2e-6)
    from pyarrow import parquet

    assert parquet.read_table(table).column_names[-3:] == [
        "solved",
        "angle_error",
        "distance_error",
    ]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "E-CLI-070"),
        (("--pose", "1,2,3", "--poses", "path.csv"), "E-CLI-070"),
        (("--poses", "path.csv", "--all"), "E-CLI-071"),
        (("--pose", "1,2,x"), "E-CLI-072"),
        (("--pose", "1,2"), "E-CLI-073"),
        (("--pose", "1,2,nan"), "E-CLI-073"),
        (("--pose", "0.4,0,0", "--guess", "1,2"), "E-CLI-073"),
        (("--poses", "empty.csv"), "E-FILE-082"),
        (("--poses", "twice.csv"), "E-FILE-085"),
        (("--poses", "zero.csv"), "E-FILE-083"),
    ],
)
def test_bad_requests(
    words: tuple[str, ...], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("path.csv").write_text("x,y,z\n0.4,0.2,0.3\n", "utf-8")
    Path("empty.csv").write_text("x,y,z\n", "utf-8")
    Path("twice.csv").write_text("x,y,z,roll,pitch,yaw,qw,qx,qy,qz\n", "utf-8")
    Path("zero.csv").write_text("x,y,z,qw,qx,qy,qz\n1,0,0,0,0,0,0\n", "utf-8")
    said = run("reach", "puma560", *words, "--json", status=2)
    assert code(said) == expected


@pytest.mark.parametrize("words", [("trajectory", "puma560", "--to", "0,0,0,0,0,0.1"), ("excite",)])
def test_motion_files_have_known_types(words: tuple[str, ...], tmp_path: Path) -> None:
    """Other file types are refused before a motion is computed."""
    said = run(*words, *["puma560"][len(words) > 1 :], "-o", tmp_path / "a.txt", "--json", status=2)
    assert code(said) == "E-CLI-028"
