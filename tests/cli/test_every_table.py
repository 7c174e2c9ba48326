"""Tables that one command writes are read by the others, in every format."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from chasles.cli import app
from chasles.cli.command import TABLES
from chasles.formats.motion import WRITERS as MOTIONS

ROBOT = "planar:2"

MOVE = "move.csv"
"""Motion from which the writers start: a trajectory with velocities and accelerations."""

WRITERS: dict[str, list[str]] = {
    "trajectory": ["trajectory", ROBOT, "--to", "1,0.5", "--step", "0.05", "-o", "TABLE"],
    "excite": ["excite", ROBOT, "--duration", "2", "--velocity", "1", "-o", "TABLE"],
    "reach": ["reach", ROBOT, "--poses", "poses.csv", "-o", "TABLE"],
    "motion": ["motion", ROBOT, MOVE, "-o", "TABLE"],
    "motion --columns": [
        *("motion", ROBOT, MOVE, "--columns", "q,qd,qdd,tau,energy", "-o", "TABLE"),
    ],
    "simulate": [
        *("simulate", ROBOT, "--duration", "0.5", "--every", "5", "--no-plots", "-o", "FOLDER"),
        *("--table", "TABLE"),
    ],
}
"""Commands that write a table."""

READERS: dict[str, list[str]] = {
    "motion": ["motion", ROBOT, "TABLE", "--differentiate"],
    "motion --columns": [
        *("motion", ROBOT, "TABLE", "--differentiate", "--columns", "tau", "-o", "FOLDER.csv"),
    ],
    "compare": ["compare", ROBOT, "--motion", "TABLE", "--with", "pinocchio"],
    "trajectory --to": ["trajectory", ROBOT, "--to", "TABLE", "-o", "FOLDER.csv"],
    "trajectory --through": [
        *("trajectory", ROBOT, "--through", "TABLE", "--kind", "spline", "-o", "FOLDER.csv"),
    ],
    "simulate --follow": [
        *("simulate", ROBOT, "--follow", "TABLE", "--control", "computed-torque"),
        *("--stiffness", "9", "--damping", "6", "--duration", "0.1", "--no-plots", "-o", "FOLDER"),
    ],
    "identify": ["identify", ROBOT, "TABLE", "--include", "inertia"],
}
"""Commands that read a table."""

VARYING = ("files", "folder", "motion", "scenario_digest", "seconds", "wall_s", "rate")
"""Keys of answers that contain paths, digests of paths, or computation times."""

POSES = "t,x,y,z\n" + "".join(f"{0.1 * k!r},{1.5 - 0.05 * k!r},0.0,0.2\n" for k in range(9))


@pytest.fixture(scope="module", autouse=True)
def here(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Folder with the input files."""
    folder = tmp_path_factory.mktemp("tables")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("poses.csv").write_text(POSES)
        call([*WRITERS["trajectory"]], MOVE)
        yield folder
    written.cache_clear()


def call(words: list[str], table: str, folder: str = "none") -> dict[str, Any]:
    """Run a command, and return its answer without paths and times."""
    found = [word.replace("TABLE", table).replace("FOLDER", folder) for word in words]
    result = CliRunner().invoke(app, [*found, "--json"])
    assert result.exit_code in (0, 1, 2), result.output
    data = json.loads(result.stdout)
    if result.exit_code == 2:
        return {"error": data["error"]["code"]}
    return {key: value for key, value in data.items() if key not in VARYING}


@cache
def written(writer: str, suffix: str) -> str:
    name = f"{writer.replace(' ', '')}{suffix}"
    answer = call(WRITERS[writer], name, f"of-{name}")
    assert "error" not in answer, answer
    return name


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, float) or (isinstance(one, list) and one and isinstance(one[0], float)):
        return bool(np.allclose(one, other, rtol=1e-12, atol=1e-15, equal_nan=True))
    return bool(one == other)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("writer", WRITERS)
def test_every_reader_reads_every_table(writer: str, reader: str) -> None:
    """The answers from the three formats are equal; only logs without torques are refused."""
    answers = {}
    for suffix in TABLES:
        folder = f"{writer}{reader}{suffix}".replace(" ", "")
        answers[suffix] = call(READERS[reader], written(writer, suffix), folder)
    lacking = reader == "identify" and writer in ("trajectory", "excite", "reach")
    assert answers[".csv"].get("error", "") == ("E-LOG-003" if lacking else "")
    for suffix, answer in answers.items():
        assert same(answer, answers[".csv"]), (suffix, answer, answers[".csv"])


def test_motions_and_tables_have_the_same_formats() -> None:
    assert set(TABLES) == set(MOTIONS) == {".csv", ".npz", ".parquet"}


@pytest.mark.parametrize("suffix", TABLES)
def test_poses_and_forces_in_every_format(suffix: str) -> None:
    """`reach --poses` and `motion --forces` read the columns of each format."""
    import pyarrow
    from pyarrow import parquet

    columns = {"t": [0.0, 1.0], "x": [1.0, 1.2], "y": [0.0, 0.0], "z": [0.3, 0.1]}
    loads: dict[str, list[float]] = {x: [1.0] for x in ("fx", "fy", "fz", "cx", "cy", "cz")}
    for name, given in (("poses", columns), ("forces", loads)):
        text = [
            ",".join(given),
            *(",".join(map(repr, row)) for row in zip(*given.values(), strict=True)),
        ]
        Path(f"{name}.csv").write_text("\n".join(text) + "\n")
        np.savez(f"{name}.npz", **{key: np.array(x) for key, x in given.items()})  # type: ignore[arg-type]
        parquet.write_table(pyarrow.table(given), f"{name}.parquet")
    found = call(["reach", ROBOT, "--poses", "TABLE"], f"poses{suffix}")
    assert found["solved"] == [True, True]
    found = call(["motion", ROBOT, MOVE, "--forces", "TABLE"], f"forces{suffix}")
    assert found["work"]["external"] != 0.0
