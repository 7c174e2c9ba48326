"""`chasles motion` on folders of logs: tables of results, bounded memory, interrupted runs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pytest
from pyarrow import parquet
from support import raises
from typer.testing import CliRunner

import chasles
from chasles.cli import dataset
from chasles.cli.app import app
from chasles.cli.dataset import Job, partitions
from chasles.identification import logs, sources

ROBOT = chasles.robots.puma560()
ROWS = 300


def log(seed: int, rows: int = ROWS) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    names = logs.column_names(ROBOT)
    found = {"t": 0.01 * np.arange(rows)}
    for quantity in ("q", "qd", "qdd"):
        found |= dict(zip(names[quantity], rng.normal(size=(6, rows)), strict=True))
    return found | {"note": rng.normal(size=rows)}


def states(log: dict[str, np.ndarray]) -> list[np.ndarray]:
    names = logs.column_names(ROBOT)
    return [np.column_stack([log[n] for n in names[x]]) for x in ("q", "qd", "qdd")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder with three logs, one of them in a partition, and one as .csv."""
    place = tmp_path / "logs"
    (place / "day=1").mkdir(parents=True)
    parquet.write_table(pyarrow.table(log(0)), place / "a.parquet")
    parquet.write_table(pyarrow.table(log(1)), place / "day=1" / "b.parquet")
    pyarrow.csv.write_csv(pyarrow.table(log(2)), place / "c.csv")
    return place


FILES = ("a.parquet", "day=1/b.parquet", "c.csv.parquet")


def command(*words: Any) -> Any:
    return CliRunner().invoke(app, ["motion", "puma560", *map(str, words)])


def test_tables_have_the_torques_of_their_logs(
    folder: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    """Tables contain time and requested columns, bitwise equal to the function's results."""
    monkeypatch.setattr(sources, "ROWS", 70)
    answer = command(folder, "-o", tmp_path / "out", "--json")
    assert answer.exit_code == 0, answer.output
    told = json.loads(answer.stdout)
    assert (told["states"], told["count"], told["resumed"]) == (3 * ROWS, 3, 0)
    taus = []
    for seed, name in enumerate(FILES):
        given = log(seed)
        table = parquet.read_table(tmp_path / "out" / name, partitioning=None)
        taus.append(ROBOT.inverse_dynamics(*states(given)))
        assert table.column_names == ["t", *logs.column_names(ROBOT)["tau"]]
        found = np.column_stack([table[name] for name in table.column_names[1:]])
        assert np.array_equal(found, taus[-1])
        assert np.array_equal(table["t"], given["t"])
    tau = np.concatenate(taus)
    assert np.allclose([x["peak"] for x in told["forces"]], np.abs(tau).max(axis=0), rtol=1e-12)
    assert np.allclose([x["rms"] for x in told["forces"]], np.sqrt((tau**2).mean(axis=0)))


def test_tables_of_smooth_motions_are_compressed(tmp_path: Path) -> None:
    """Tables are a fifth smaller than their values, without a mask for missing values."""
    names, t = logs.column_names(ROBOT), 1e-3 * np.arange(5000)
    given = {"t": t}
    for quantity in ("q", "qd", "qdd"):
        given |= {name: np.sin(t + k) for k, name in enumerate(names[quantity])}
    parquet.write_table(pyarrow.table(given), tmp_path / "log.parquet")
    target = tmp_path / "out.parquet"
    Job(ROBOT)((tmp_path / "log.parquet", target), lambda n: None)
    data = parquet.read_metadata(target)
    group = data.row_group(0)
    stored = sum(group.column(k).total_compressed_size for k in range(data.num_columns))
    assert stored < 0.8 * 8 * data.num_columns * len(t)
    assert not any(field.nullable for field in parquet.read_schema(target))


def test_columns_by_quantity_and_by_name(folder: Path, tmp_path: Path) -> None:
    wanted = "energy,tool.M14,velocity,joint2.fz,joint1.q"
    given = ("--columns", wanted, "--frame", "tool", "-o", tmp_path / "one.parquet")
    answer = command(folder / "a.parquet", *given)
    assert answer.exit_code == 0, answer.output
    table = parquet.read_table(tmp_path / "one.parquet")
    q, qd, qdd = states(log(0))
    expected = {
        "t": log(0)["t"],
        "joint1.q": q[:, 0],
        "tool.M14": ROBOT.forward_kinematics(q, frame="tool")[:, 0, 3],
        "tool.wx": ROBOT.frame_velocity(q, qd, frame="tool")[:, 0],
        "tool.vz": ROBOT.frame_velocity(q, qd, frame="tool")[:, 5],
        "joint2.fz": ROBOT.joint_reactions(q, qd, qdd)[:, 1, 5],
        "kinetic": ROBOT.kinetic_energy(q, qd),
        "potential": ROBOT.potential_energy(q),
    }
    assert len(table.column_names) == len(expected) + 4
    for name, values in expected.items():
        assert np.array_equal(table[name], values), name


def test_an_interrupted_run_continues(folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Complete files are not computed again, and no incomplete file remains."""
    out, job = tmp_path / "out", Job(ROBOT)
    pairs, count = partitions(folder, out, Job(ROBOT).reader()), 0

    def stop(states: int) -> None:
        nonlocal count
        count += states
        if count > ROWS:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dataset.run(job, pairs, stop, threads=1)
    assert [target.exists() for _, target in pairs] == [True, False, False]
    assert len([path for path in out.rglob("*") if path.is_file()]) == 1
    before = pairs[0][1].stat().st_mtime_ns
    total = dataset.run(job, pairs, lambda states: None)
    assert (total.states, total.files, total.resumed, total.computed) == (900, 3, 1, 600)
    assert pairs[0][1].stat().st_mtime_ns == before


def test_tables_of_others_are_not_continued(folder: Path, tmp_path: Path) -> None:
    """Tables of another robot, of other columns or of a changed log are refused."""
    out = tmp_path / "out"
    assert command(folder, "-o", out).exit_code == 0
    for other in (Job(ROBOT.with_parameters({"link2.mass": 1.0})), Job(ROBOT, ("energy",))):
        with raises("E-CLI-272", "a.parquet", "--overwrite"):
            dataset.run(other, partitions(folder, out, Job(ROBOT).reader()), lambda states: None)
    parquet.write_table(pyarrow.table(log(7)), folder / "a.parquet")
    assert "E-CLI-272" in command(folder, "-o", out).output
    assert command(folder, "-o", out, "--overwrite").exit_code == 0
    found = parquet.read_table(out / "a.parquet")["joint1.tau"]
    assert np.array_equal(found, ROBOT.inverse_dynamics(*states(log(7)))[:, 0])


def test_units_names_and_bad_rows(tmp_path: Path) -> None:
    given = log(3)
    other = {name: np.degrees(x) if name.endswith(".q") else x for name, x in given.items()}
    other["turn"] = other.pop("joint1.q")
    other["joint2.qd"][17] = np.nan
    parquet.write_table(pyarrow.table(other), tmp_path / "log.parquet")
    words = ("--unit", "q=deg", "--column", "joint1.q=turn", "--columns", "tau")
    words = (tmp_path / "log.parquet", "-o", tmp_path / "out.parquet", *words)
    assert "log.parquet:18: " in command(*words).output
    assert not (tmp_path / "out.parquet").exists()
    answer = command(*words, "--skip-bad")
    assert answer.exit_code == 0, answer.output
    assert "skipped: values that are not finite: 1" in answer.output
    table = parquet.read_table(tmp_path / "out.parquet")
    expected = np.delete(ROBOT.inverse_dynamics(*states(given)), 17, axis=0)
    found = np.column_stack([table[name] for name in logs.column_names(ROBOT)["tau"]])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def moved(rows: int = 500) -> dict[str, np.ndarray]:
    """Return times and positions of a smooth motion, and their derivatives."""
    t = 0.01 * np.arange(rows)
    found, phase = {"t": t}, np.arange(6)
    q, qd, qdd = np.sin(t[:, None] + phase), np.cos(t[:, None] + phase), -np.sin(t[:, None] + phase)
    names = logs.column_names(ROBOT)
    for quantity, array in (("q", q), ("qd", qd), ("qdd", qdd)):
        found |= dict(zip(names[quantity], array.T, strict=True))
    return found


@pytest.mark.parametrize(
    ("kind", "code", "reason"),
    [
        ("swapped", "E-LOG-017", "files with swapped joints: 1"),
        ("units", "E-LOG-018", "files in other units: 1"),
        ("degrees", "E-LOG-007", "files in other units: 1"),
        ("missing", "E-LOG-003", "files without a column: 1"),
        ("truncated", "E-LOG-012", "unreadable files: 1"),
    ],
)
def test_a_bad_log_among_good_ones(kind: str, code: str, reason: str, tmp_path: Path) -> None:
    """A bad log is reported with its file; --skip-bad omits it and gives the reason."""
    place, bad = tmp_path / "logs", moved()
    place.mkdir()
    parquet.write_table(pyarrow.table(moved()), place / "good.parquet")
    if kind == "swapped":
        bad["joint1.qd"], bad["joint3.qd"] = bad["joint3.qd"], bad["joint1.qd"]
    elif kind == "units":
        bad["joint2.qd"] = np.degrees(bad["joint2.qd"])
    elif kind == "degrees":
        bad["joint2.q"] = np.degrees(bad["joint2.q"])
    elif kind == "missing":
        del bad["joint4.qdd"]
    parquet.write_table(pyarrow.table(bad), place / "bad.parquet")
    if kind == "truncated":
        whole = (place / "bad.parquet").read_bytes()
        (place / "bad.parquet").write_bytes(whole[: len(whole) // 2])
    answer = command(place, "-o", tmp_path / "out")
    assert answer.exit_code == 2
    assert code in answer.output
    assert "bad.parquet" in answer.output.replace("\n", "")
    answer = command(place, "-o", tmp_path / "out", "--skip-bad", "--json")
    assert answer.exit_code == 0, answer.output
    told = json.loads(answer.stdout)
    assert told["states"] == 500
    assert [f"{name}: {count}" for name, count in told["skipped"].items()] == [reason]
    assert "E-CLI-272" in command(place, "-o", tmp_path / "out").output


def test_rates_are_computed_by_differences(tmp_path: Path, monkeypatch: Any) -> None:
    """Derivatives have an error of 1e-4 (second order), for any block size and file type."""
    monkeypatch.setattr(sources, "ROWS", 70)
    place = tmp_path / "logs"
    place.mkdir()
    given = moved()
    bare = {name: x for name, x in given.items() if name == "t" or name.endswith(".q")}
    parquet.write_table(pyarrow.table(bare), place / "a.parquet")
    pyarrow.csv.write_csv(pyarrow.table(bare), place / "b.csv")
    words = ("--differentiate", "--columns", "qd,qdd,tau")
    answer = command(place, "-o", tmp_path / "out", *words)
    assert answer.exit_code == 0, answer.output
    one, other = (parquet.read_table(tmp_path / "out" / n) for n in ("a.parquet", "b.csv.parquet"))
    assert one == other
    for name in logs.column_names(ROBOT)["qd"] + logs.column_names(ROBOT)["qdd"]:
        np.testing.assert_allclose(one[name][3:-3], given[name][3:-3], atol=1e-4)
    monkeypatch.undo()
    again = command(place, "-o", tmp_path / "whole", *words)
    assert again.exit_code == 0, again.output
    for name in one.column_names:
        whole = parquet.read_table(tmp_path / "whole" / "a.parquet")[name]
        np.testing.assert_allclose(one[name], whole, rtol=1e-9, atol=1e-9)
    assert "E-LOG-003" in command(place, "-o", tmp_path / "other").output


def test_differences_do_not_cross_gaps(tmp_path: Path, monkeypatch: Any) -> None:
    """Gaps between two blocks are found, too; a motion of two rows is omitted."""
    monkeypatch.setattr(sources, "ROWS", 100)
    given = moved()
    given["t"] = given["t"] + np.repeat([0.0, 7.0, 9.0, 11.0], [200, 100, 2, 198])
    bare = {name: x for name, x in given.items() if name == "t" or name.endswith(".q")}
    parquet.write_table(pyarrow.table(bare), tmp_path / "log.parquet")
    words = (tmp_path / "log.parquet", "-o", tmp_path / "out.parquet", "--columns", "qd")
    answer = command(*words, "--differentiate")
    assert "log.parquet:201: " in answer.output
    assert "E-LOG-008" in answer.output
    answer = command(*words, "--differentiate", "--skip-bad")
    assert answer.exit_code == 0, answer.output
    assert "skipped: gaps: 3" in answer.output
    assert "skipped: motions with fewer than three rows: 1" in answer.output
    table = parquet.read_table(tmp_path / "out.parquet")
    kept = np.delete(np.arange(500), [300, 301])
    assert np.array_equal(table["t"], given["t"][kept])
    for name in logs.column_names(ROBOT)["qd"]:
        np.testing.assert_allclose(table[name], given[name][kept], atol=2e-4)


def test_files_that_are_not_logs_are_skipped(folder: Path) -> None:
    """A note names the files, and tables in a folder of the logs are not logs."""
    (folder / "notes.csv").write_text("day,weather\n1,2\n")
    for _ in range(2):
        answer = command(folder, "-o", folder / "out")
        assert answer.exit_code == 0, answer.output
        assert "(notes.csv): 1" in " ".join(answer.output.split()), answer.output
        assert "3 files" in answer.output
    assert sorted(x.name for x in (folder / "out").rglob("*.parquet")) == [
        *("a.parquet", "b.parquet", "c.csv.parquet"),
    ]
    assert "E-CLI-278" in command(folder, "-o", folder, "--overwrite").output


def test_refusals(folder: Path, tmp_path: Path) -> None:
    for words, code in (
        ((folder,), "E-CLI-274"),
        ((folder / "a.parquet", "--columns", "tau", "-o", tmp_path / "folder"), "E-CLI-028"),
        ((folder, "-o", tmp_path / "out", "--at-world"), "E-CLI-273"),
        ((folder, "-o", tmp_path / "out", "--columns", "torque"), "E-CLI-270"),
    ):
        answer = command(*words)
        assert answer.exit_code == 2
        assert code in answer.output
