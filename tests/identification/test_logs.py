"""Identification from logs: files, tables, missing rates, delays, and invalid logs."""

import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pytest
from pyarrow import parquet
from support import raises

import chasles
from chasles.identification import filtering, sources
from chasles.identification.logs import column_names

STEP = 0.002


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def fourier(seed: int, n: int, count: int = 4000) -> tuple[np.ndarray, ...]:
    """Return times, positions and their exact rates."""
    rng, t = np.random.default_rng(seed), STEP * np.arange(count)
    sines, cosines = 0.6 * rng.normal(size=(2, 5, n)) / np.arange(1, 6)[:, None]
    period = STEP * count
    move = chasles.trajectory.fourier(np.zeros(n), sines, cosines, duration=period, periodic=True)
    return (t, *move(t))


def table(robot: chasles.Robot, seed: int = 0, count: int = 4000) -> dict[str, np.ndarray]:
    """Return a log of a robot's exact motion, and of torques with noise."""
    t, q, qd, qdd = fourier(seed, robot.nv, count)
    tau = robot.inverse_dynamics(q, qd, qdd)
    tau = tau + 0.01 * tau.std(axis=0) * np.random.default_rng(seed + 1).normal(size=tau.shape)
    names, found = column_names(robot), {"t": t}
    for quantity, array in (("q", q), ("qd", qd), ("qdd", qdd), ("tau", tau)):
        found |= dict(zip(names[quantity], array.T, strict=True))
    return found


def write(path: Path, log: dict[str, Any]) -> Path:
    made = pyarrow.table(log)
    if path.suffix == ".parquet":
        parquet.write_table(made, path)
    elif path.suffix == ".npz":
        np.savez(path, **log)
    elif path.suffix == ".arrow":
        with pyarrow.ipc.new_file(path, made.schema) as writer:
            writer.write_table(made)
    else:
        pyarrow.csv.write_csv(made, path)
    return path


ROBOT = chasles.robots.planar(3)

BODY = """<inertial><origin xyz="0.1 0 0.02"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>"""

GRIPPER = f"""<robot name="gripper"><link name="base"/><link name="upper">{BODY}</link>
<link name="fore">{BODY}</link><link name="jaw">{BODY}</link>
<joint name="pan" type="revolute"><parent link="base"/><child link="upper"/>
<axis xyz="0 1 0"/><limit lower="-3" upper="3" velocity="9" effort="50"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/>
<origin xyz="0.3 0 0"/><axis xyz="0 1 0"/><limit lower="-3" upper="3" velocity="9" effort="50"/>
</joint><joint name="finger" type="prismatic"><parent link="fore"/><child link="jaw"/>
<origin xyz="0.3 0 0"/><axis xyz="1 0 0"/><limit lower="-2" upper="2" velocity="9" effort="50"/>
</joint></robot>"""


@pytest.fixture
def gripper(tmp_path: Path) -> chasles.Robot:
    """Return a robot with two revolute joints and a prismatic joint."""
    path = tmp_path / "gripper.urdf"
    path.write_text(GRIPPER)
    return chasles.load(path)


def scaled(log: dict[str, np.ndarray], factor: float, *names: str) -> dict[str, np.ndarray]:
    """Return the log with some columns multiplied by a factor."""
    return {name: array * (factor if name in names else 1.0) for name, array in log.items()}


def direct(log: dict[str, np.ndarray], **options: Any) -> Any:
    names = column_names(ROBOT)
    arrays = {x: np.column_stack([log[name] for name in names[x]]) for x in names}
    return chasles.identify(ROBOT, **arrays, **options)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".npz"])
def test_files_give_what_arrays_give(suffix: str, tmp_path: Path) -> None:
    """Gram matrices of the compiled program agree with triangular factors of the regressor."""
    logs = [table(ROBOT, seed) for seed in (0, 5)]
    folder = tmp_path / "logs"
    (folder / "day=1").mkdir(parents=True)
    write(folder / f"a{suffix}", logs[0])
    write(folder / "day=1" / f"b{suffix}", logs[1])
    both = {name: np.concatenate([log[name] for log in logs]) for name in logs[0]}
    terms = ["inertia", "armature", "damping", "friction", "offset"]
    found, expected = chasles.identify(ROBOT, folder, include=terms), direct(both, include=terms)
    assert found.samples == expected.samples == 8000
    np.testing.assert_allclose(found.base, expected.base, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.noise, expected.noise, rtol=1e-6)
    np.testing.assert_allclose(found.deviations, expected.deviations, rtol=1e-6)
    np.testing.assert_allclose(found.vector, expected.vector, rtol=1e-4, atol=1e-6)


def test_a_simulation_folder_is_a_log(tmp_path: Path) -> None:
    """The arrays of motion.npz are quantities; other files in the folder are not read."""
    log, names = table(ROBOT), column_names(ROBOT)
    grouped = {x: np.column_stack([log[name] for name in some]) for x, some in names.items()}
    np.savez(tmp_path / "motion.npz", t=log["t"], format="chasles-motion-1", **grouped)
    (tmp_path / "log.csv").write_text("t\n0\n")
    found = chasles.identify(ROBOT, tmp_path)
    np.testing.assert_array_equal(found.base, chasles.identify(ROBOT, log).base)


def test_damaged_archives_are_refused(tmp_path: Path) -> None:
    (tmp_path / "log.npz").write_bytes(b"\x00\x01")
    with raises("E-FILE-027"):
        chasles.identify(ROBOT, tmp_path / "log.npz")
    np.savez(tmp_path / "log.npz", t=np.zeros(3), **{"joint1.q": np.zeros(4)})
    with raises("E-FILE-421"):
        chasles.identify(ROBOT, tmp_path / "log.npz")


def test_messages_name_the_column() -> None:
    """Messages about missing columns and NaN name the column, not the first one or the quantity."""
    log, joint = table(ROBOT), ROBOT.joints[1]
    log[f"{joint}.q"][17] = np.nan
    with raises("E-LOG-004", f"{joint}.q is not") as caught:
        chasles.identify(ROBOT, log)
    assert caught.value.line == 18
    del log[f"{joint}.tau"]
    with raises("E-LOG-003", f"'{joint}.tau'") as caught:
        chasles.identify(ROBOT, log)
    assert f"columns={{'{joint}.tau': ...}}" in caught.value.remedy
    with raises("E-LOG-003", "'torque'") as caught:
        chasles.identify(ROBOT, log, columns={f"{joint}.tau": "torque"})
    assert f"columns={{'{joint}.tau': ...}}" in caught.value.remedy


@pytest.mark.parametrize("smoothing", ["low-pass", "savitzky-golay", "spline"])
def test_positions_alone(smoothing: Any) -> None:
    """Noisy positions without rates suffice to predict the torques of new motions."""
    t, q, qd, qdd = fourier(3, ROBOT.nv)
    rng = np.random.default_rng(4)
    tau = ROBOT.inverse_dynamics(q, qd, qdd)
    size = tau.std(axis=0)
    tau = tau + 0.01 * size * rng.normal(size=tau.shape)
    noisy = q + 1e-5 * rng.normal(size=q.shape)
    options: dict[str, Any] = {"include": ["inertia"], "smoothing": smoothing}
    found = chasles.identify(ROBOT, q=noisy, tau=tau, t=t, **options)
    _, *new = fourier(9, ROBOT.nv)
    exact = ROBOT.inverse_dynamics(*new)
    assert np.all(found.validate(*new, exact) < 0.02 * exact.std(axis=0))
    assert "cut-off" in found.notes[0]


def test_the_cut_off_lies_above_the_motion() -> None:
    """The cutoff is above the fastest term, 5 / 8 s = 0.625 Hz, and far below the noise."""
    _, q, *_ = fourier(3, 3)
    noisy = q + 1e-5 * np.random.default_rng(0).normal(size=q.shape)
    assert 0.6 < filtering.chosen_cutoff(noisy, STEP) < 5.0


def test_the_cut_off_of_rounded_positions_with_a_resonance() -> None:
    """Encoder steps and a weak line at 1.2 kHz do not count as motion, which ends at 4 Hz."""
    t = 2e-4 * np.arange(20_001)
    q = np.sin(2.0 * np.pi * t)[:, None] + 0.1 * np.sin(8.0 * np.pi * t)[:, None]
    seen = np.round(q + 1e-6 * np.sin(2400.0 * np.pi * t)[:, None], 5)
    assert 4.0 < filtering.chosen_cutoff(seen, 2e-4) < 100.0
    found = filtering.smoothed(t, seen, np.zeros_like(q))
    inside = np.isin(t, found.t)
    want = -(np.sin(2.0 * np.pi * t) + 1.6 * np.sin(8.0 * np.pi * t)) * (2.0 * np.pi) ** 2
    assert np.std(found.qdd[:, 0] - want[inside]) < 0.02 * np.std(want)


def test_a_delay_is_found() -> None:
    log = table(ROBOT)
    for name in column_names(ROBOT)["tau"]:
        log[name] = np.interp(log["t"] - 0.013, log["t"], log[name])
    found = chasles.identify(ROBOT, log, delay="estimate", include=["inertia"])
    lag = float(next(note for note in found.notes if "delay" in note).split()[-2])
    np.testing.assert_allclose(lag, 13.0, atol=0.3)
    assert np.all(found.noise < 0.5 * chasles.identify(ROBOT, log, include=["inertia"]).noise)


def test_names_and_units_of_a_log(tmp_path: Path) -> None:
    log = table(ROBOT)
    names = column_names(ROBOT)
    other = {"t": 1e3 * log["t"]}
    for quantity in names:
        for k, name in enumerate(names[quantity]):
            other[f"{quantity}_{k}"] = log[name] * (1.0 if quantity == "tau" else 180.0 / np.pi)
    columns = {name: f"{x}_{k}" for x in names for k, name in enumerate(names[x])}
    units = {"t": "ms", "q": "deg", "qd": "deg/s", "qdd": "deg/s2"}
    path = write(tmp_path / "log.parquet", other)
    found = chasles.identify(ROBOT, path, columns=columns, units=units)
    np.testing.assert_allclose(found.base, direct(log).base, rtol=1e-6, atol=1e-9)


def test_the_unit_of_a_quantity_converts_only_its_kind(gripper: chasles.Robot) -> None:
    """With q=deg and qd=deg/s, the columns of prismatic joints stay in m and m/s."""
    log = table(gripper)
    turned = [f"{joint}.{x}" for joint in ("pan", "elbow") for x in ("q", "qd", "qdd")]
    other = scaled(log, 180.0 / np.pi, *turned)
    units = {"q": "deg", "qd": "deg/s", "qdd": "deg/s2"}
    found, expected = chasles.identify(gripper, other, units=units), chasles.identify(gripper, log)
    np.testing.assert_allclose(found.base, expected.base, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.condition, expected.condition, rtol=1e-6)
    other = scaled(log, 1000.0, "finger.q")
    found = chasles.identify(gripper, other, units={"q": "mm"})
    np.testing.assert_allclose(found.base, expected.base, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "unit", "own"),
    [("finger.q", "deg", "in m"), ("pan.qd", "deg", "in rad/s"), ("q", "ms", "in rad or m")],
)
def test_units_of_another_kind(gripper: chasles.Robot, name: str, unit: str, own: str) -> None:
    with raises("E-LOG-026", name, unit, own):
        chasles.identify(gripper, table(gripper), units={name: unit})


def test_remedies_for_units(gripper: chasles.Robot) -> None:
    """Remedies name all angles at once, and give no prismatic joint a unit of angles."""
    log, turn = table(gripper), 180.0 / np.pi
    for names, factor, remedy in (
        (["pan.q", "elbow.q"], turn, "units={'q': 'deg'}"),
        (["elbow.q"], turn, "units={'elbow.q': 'deg'}"),
        (["finger.q"], 1000.0, "units={'finger.q': 'mm'}"),
    ):
        with raises("E-LOG-007") as caught:
            chasles.identify(gripper, scaled(log, factor, *names))
        assert caught.value.remedy.endswith(remedy)
    with raises("E-LOG-007", "check") as caught:
        chasles.identify(gripper, scaled(log, turn**2, "elbow.q"), units={"q": "deg"})
    for names, factor, remedy in (
        (["pan.qd", "elbow.qd"], turn, "units={'qd': 'deg/s'}"),
        (["elbow.qd"], turn, "units={'elbow.qd': 'deg/s'}"),
        (["finger.qd"], 1000.0, "units={'finger.qd': 'mm/s'}"),
    ):
        with raises("E-LOG-018") as caught:
            chasles.identify(gripper, scaled(log, factor, *names))
        assert remedy in caught.value.remedy


def spoiled(kind: str, log: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    log = {name: array.copy() for name, array in log.items()}
    one, two = ROBOT.joints[:2]
    if kind == "missing":
        del log[f"{one}.tau"]
    elif kind == "nan":
        log[f"{one}.q"][17] = np.nan
    elif kind == "repeated":
        log["t"][21] = log["t"][20]
    elif kind == "unsorted":
        log["t"][[30, 31]] = log["t"][[31, 30]]
    elif kind == "gap":
        log["t"][40:] += 1.0
    elif kind == "units":
        log[f"{one}.qd"] *= 180.0 / np.pi
    else:
        assert kind == "swapped rates"
        a, b = f"{one}.qd", f"{two}.qd"
        log[a], log[b] = log[b], log[a]
    return log


@pytest.mark.parametrize(
    ("kind", "code", "line"),
    [
        ("missing", "E-LOG-003", 1),
        ("nan", "E-LOG-004", 18),
        ("repeated", "E-LOG-005", 22),
        ("unsorted", "E-LOG-006", 32),
        ("gap", "E-LOG-008", 41),
        ("units", "E-LOG-018", 1),
        ("swapped rates", "E-LOG-017", 1),
    ],
)
def test_bad_logs_are_named(kind: str, code: str, line: int, tmp_path: Path) -> None:
    path = write(tmp_path / "bad.parquet", spoiled(kind, table(ROBOT)))
    with raises(code, "bad.parquet") as caught:
        chasles.identify(ROBOT, path)
    assert caught.value.line == line
    assert caught.value.remedy


PUMA = chasles.robots.puma560()
"""An arm whose joint torques differ clearly from each other."""


def exchanged(quantities: list[str], log: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return a log in which some columns of joints 2 and 3 are swapped."""
    other = {"joint2": "joint3", "joint3": "joint2"}
    found = {}
    for name, column in log.items():
        joint, _, quantity = name.partition(".")
        found[f"{other.get(joint, joint)}.{quantity}" if quantity in quantities else name] = column
    return {"t": log["t"], **found}


@pytest.mark.parametrize(
    ("quantities", "code"),
    [("tau", "E-LOG-016"), ("qd", "E-LOG-017"), ("q qd qdd tau", "E-LOG-025")],
)
def test_a_log_with_swapped_joints_among_good_ones(
    quantities: str, code: str, tmp_path: Path
) -> None:
    """The error names the file and row; with skip_bad, the log is skipped and counted."""
    for seed in (0, 5):
        write(tmp_path / f"{seed}.parquet", table(PUMA, seed))
    good = chasles.identify(PUMA, tmp_path)
    bad = exchanged(quantities.split(), table(PUMA, 3))
    write(tmp_path / "3.parquet", bad)
    with raises(code, "3.parquet", "joint2", "joint3", "swapped") as caught:
        chasles.identify(PUMA, tmp_path)
    assert caught.value.line == 1
    assert "columns" in caught.value.remedy
    found = chasles.identify(PUMA, tmp_path, skip_bad=True)
    assert "skipped: files with swapped joints: 1" in found.notes
    np.testing.assert_allclose(found.base, good.base, rtol=1e-9)


def test_no_joints_of_a_heavier_robot_are_called_swapped() -> None:
    """The robot's initial parameters may be far off, as before every identification."""
    masses = {f"link{k}.mass": 2.0 ** (k - 3) for k in range(2, 7)}
    log = table(PUMA.with_parameters(masses))
    assert chasles.identify(PUMA, log).samples == 4000


def test_positions_in_degrees_are_doubted() -> None:
    robot = chasles.robots.puma560()
    if not np.all(np.isfinite(robot.limits.upper)):
        pytest.skip("the robot has no limits")
    log = table(robot)
    log["joint1.q"] = np.degrees(log["joint1.q"])
    with raises("E-LOG-007", "joint1.q"):
        chasles.identify(robot, log)


def test_bad_rows_and_files_are_counted(tmp_path: Path) -> None:
    log = table(ROBOT)
    for kind in ("nan", "repeated", "gap"):
        log = spoiled(kind, log)
    write(tmp_path / "a.parquet", log)
    whole = write(tmp_path / "b.parquet", table(ROBOT, 5)).read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole[: len(whole) // 2])
    with raises("E-LOG-012", "b.parquet", "truncated"):
        chasles.identify(ROBOT, tmp_path / "b.parquet")
    found = chasles.identify(ROBOT, tmp_path, skip_bad=True)
    assert found.samples == 3998
    note = next(note for note in found.notes if note.startswith("skipped"))
    for part in ("not finite: 1", "repeated times: 1", "gaps: 1", "unreadable files: 1"):
        assert part in note


def test_files_of_a_folder_that_are_not_logs_are_skipped(tmp_path: Path) -> None:
    """A file without a column of the joints is not a log; a note names it."""
    for k, suffix in enumerate((".csv", ".npz", ".parquet")):
        write(tmp_path / f"log{suffix}", table(ROBOT, k))
        write(tmp_path / f"other{suffix}", {"t": np.arange(3.0), "temperature": np.ones(3)})
    np.savez(tmp_path / "policy.npz", weights=np.array([{}], dtype=object))
    (tmp_path / "._log.csv").write_bytes(b"\xff\x00")
    found = chasles.identify(ROBOT, tmp_path)
    assert found.samples == 3 * 4000
    (note,) = (note for note in found.notes if note.startswith("skipped"))
    assert "without columns of the robot's joints (other.csv, other.npz, other.parquet" in note
    assert note.endswith("...): 4")
    with raises("E-LOG-003", "other.csv"):
        chasles.identify(ROBOT, tmp_path / "other.csv")  # a file that was named is a log


def test_a_folder_without_logs_reports_the_missing_column(tmp_path: Path) -> None:
    """The names of the columns may be wrong, so that the message names the first one."""
    log = {f"left_{name}": column for name, column in table(ROBOT).items()}
    write(tmp_path / "log.csv", log)
    with raises("E-LOG-003", "log.csv", "columns="):
        chasles.identify(ROBOT, tmp_path)
    names = [name for names in column_names(ROBOT).values() for name in names]
    given = {name: f"left_{name}" for name in ("t", *names)}
    assert chasles.identify(ROBOT, tmp_path, columns=given).samples == 4000


def test_a_damaged_file_of_a_folder_is_reported(tmp_path: Path) -> None:
    write(tmp_path / "a.npz", table(ROBOT))
    (tmp_path / "b.npz").write_bytes(b"damaged")
    with raises("E-FILE-027", "b.npz", "skip_bad=True"):
        chasles.identify(ROBOT, tmp_path)


def test_refusals(tmp_path: Path) -> None:
    with raises("E-LOG-019", "log.txt"):
        chasles.identify(ROBOT, tmp_path / "log.txt")
    (tmp_path / "log.txt").write_text("t\n0\n")
    with raises("E-LOG-009", "log.txt"):
        chasles.identify(ROBOT, tmp_path / "log.txt")
    with raises("E-LOG-010"):
        chasles.identify(ROBOT, tmp_path)
    with raises("E-LOG-013"):
        chasles.identify(ROBOT, 3)
    with raises("E-LOG-001", "jonit1.q"):
        chasles.identify(ROBOT, tmp_path, columns={"jonit1.q": "x"})
    with raises("E-LOG-002", "turns"):
        chasles.identify(ROBOT, tmp_path, units={"q": "turns"})
    t, q, *_ = fourier(0, 3)
    with raises("E-IDENT-018"):
        chasles.identify(ROBOT, q=q, tau=q)
    with raises("E-IDENT-017", "250"):
        chasles.identify(ROBOT, q=q, tau=q, t=t, cutoff=300.0)
    with raises("E-IDENT-016", "10"):
        chasles.identify(ROBOT, q=q[:10], tau=q[:10], t=t[:10])
    with raises("E-IDENT-015", "boxes"):
        chasles.identify(ROBOT, q=q, tau=q, t=t, smoothing="boxes")  # type: ignore[arg-type]
    log = {name: x for name, x in table(ROBOT).items() if name != "t" and not name.endswith("qdd")}
    with raises("E-LOG-015", "times"):
        chasles.identify(ROBOT, log)
    empty = {name: x[:0] for name, x in table(ROBOT).items()}
    with raises("E-IDENT-020"):
        chasles.identify(ROBOT, empty)


def test_the_command(tmp_path: Path) -> None:
    """The command turns a folder of logs into a robot file with accurate torques, and a report."""
    from typer.testing import CliRunner

    from chasles.cli.app import app

    truth = chasles.robots.puma560()
    heavy = {f"link{k}.mass": 1.3 * truth.model.source.links[k].inertia.m for k in range(2, 7)}
    chasles.save(truth.with_parameters(heavy), tmp_path / "old.toml")
    old = chasles.load(tmp_path / "old.toml")
    (tmp_path / "logs").mkdir()
    for seed in range(2):
        write(tmp_path / "logs" / f"{seed}.parquet", table(truth, seed))
    write(tmp_path / "other.parquet", table(truth, 7))
    given = ["identify", "old.toml", "logs", "-o", "new.toml", "--report", "report.html"]
    given += ["--validate", "other.parquet", "--include", "inertia"]
    given = [str(tmp_path / x) if "." in x or x == "logs" else x for x in given]
    answer = CliRunner().invoke(app, given)
    assert answer.exit_code == 0, answer.output
    new = chasles.load(tmp_path / "new.toml")
    _, *at = fourier(11, 6)
    exact = truth.inverse_dynamics(*at)
    before, after = (np.abs(r.inverse_dynamics(*at) - exact).max() for r in (old, new))
    assert after < 0.02 * before
    page = (tmp_path / "report.html").read_text("utf-8")
    for part in ("Torques of the validation log", "data:image/png", "99.7 % interval"):
        assert part in page


def test_errors_of_training_and_validation_logs(tmp_path: Path) -> None:
    """Table, JSON and page give the same errors; the validation error is that of the whole log."""
    from typer.testing import CliRunner

    from chasles.cli.app import app

    chasles.save(ROBOT, tmp_path / "robot.toml")
    log, other = table(ROBOT), table(ROBOT, 7)
    for name in column_names(ROBOT)["qd"]:  # joints with friction at rest are left out
        other[name][2500:] = 0.0
    given = ["identify", str(tmp_path / "robot.toml"), str(write(tmp_path / "log.parquet", log))]
    given += ["--validate", str(write(tmp_path / "other.parquet", other)), "--overwrite"]
    given += ["--report", str(tmp_path / "report.html")]
    found = chasles.identify(ROBOT, log, include=["inertia", "damping", "friction"])
    q, qd, qdd, tau = (
        np.column_stack([other[x] for x in names]) for names in column_names(ROBOT).values()
    )
    told = CliRunner().invoke(app, [*given, "--json"])
    assert told.exit_code == 0, told.output
    errors = json.loads(told.stdout)["errors"]
    expected = found.validate(q, qd, qdd, tau)
    np.testing.assert_allclose(list(errors["validation"].values()), expected, rtol=1e-6)
    shown = CliRunner().invoke(app, given, env={"COLUMNS": "200"}).output
    page = (tmp_path / "report.html").read_text("utf-8")
    for text in (shown, page):
        for part in ("noise (training log)", "rms error (validation log)", "first 2000 of 4000"):
            assert part in text
        for row in errors.values():
            assert all(f"{error:.4g}" in text for error in row.values())
    told = CliRunner().invoke(app, [*given[:3], "--json"])
    assert list(json.loads(told.stdout)["errors"]) == ["training"]


def test_data_frames() -> None:
    """Data frames of pandas and data sets of xarray are accepted if they are installed."""
    pandas = pytest.importorskip("pandas")
    log = table(ROBOT)
    frame = pandas.DataFrame(log)
    expected = direct(log).base
    np.testing.assert_allclose(chasles.identify(ROBOT, frame).base, expected, rtol=1e-6, atol=1e-9)
    xarray = pytest.importorskip("xarray")
    set_of = xarray.Dataset({name: ("row", x) for name, x in log.items()})
    np.testing.assert_allclose(chasles.identify(ROBOT, set_of).base, expected, rtol=1e-6, atol=1e-9)


def test_csv_without_pyarrow(tmp_path: Path, monkeypatch: Any) -> None:
    """Without pyarrow, a CSV file gives the same values; errors name the line."""
    path = write(tmp_path / "log.csv", table(ROBOT))
    expected = chasles.identify(ROBOT, path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(sources, "ROWS", 700)
    found = chasles.identify(ROBOT, path)
    np.testing.assert_allclose(found.base, expected.base, rtol=1e-9, atol=1e-12)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2000], lines[2000][:40]]))
    with raises("E-LOG-020", "log.csv") as caught:
        chasles.identify(ROBOT, path)
    assert caught.value.line == 2000
    path.write_text("\n".join([*lines[:900], lines[900].replace(",", ",x", 1), *lines[901:]]))
    with raises("E-LOG-024", "log.csv") as caught:
        chasles.identify(ROBOT, path)
    assert caught.value.line == 900
    with raises("E-LOG-011", "pyarrow"):
        chasles.identify(ROBOT, write_bytes(tmp_path / "log.parquet"))


def write_bytes(path: Path) -> Path:
    path.write_bytes(b"PAR1")
    return path


@pytest.mark.parametrize("first", [2000, 1999, 2001])
def test_gaps_at_the_border_of_blocks(first: int, tmp_path: Path, monkeypatch: Any) -> None:
    """A gap at the end of a block is found and counted once."""
    monkeypatch.setattr(sources, "ROWS", 1000)
    log = table(ROBOT)
    log["t"][first:] += 1.0
    path = write(tmp_path / "log.parquet", log)
    with raises("E-LOG-008", "log.parquet") as caught:
        chasles.identify(ROBOT, path)
    assert caught.value.line == first + 1
    found = chasles.identify(ROBOT, path, skip_bad=True)
    assert "skipped: gaps: 1" in found.notes
    assert found.samples == 4000


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_truncated_files(suffix: str, tmp_path: Path) -> None:
    """Truncated files are named; with skip_bad, they are counted and the other files are used."""
    good = write(tmp_path / f"a{suffix}", table(ROBOT))
    bad = write(tmp_path / f"b{suffix}", table(ROBOT, 3))
    data = bad.read_bytes()
    bad.write_bytes(data[: len(data) // 2] if suffix != ".csv" else data[: data.rindex(b",")])
    with raises("E-LOG-012", f"b{suffix}", "skip_bad=True"):
        chasles.identify(ROBOT, tmp_path)
    found = chasles.identify(ROBOT, tmp_path, skip_bad=True)
    assert "unreadable files: 1" in " ".join(found.notes)
    if suffix != ".csv":
        np.testing.assert_allclose(found.base, chasles.identify(ROBOT, good).base, rtol=1e-9)


def test_mixed_units_of_files(tmp_path: Path) -> None:
    """A single log in degrees per second is named instead of being averaged with the others."""
    write(tmp_path / "a.parquet", table(ROBOT))
    write(tmp_path / "b.parquet", spoiled("units", table(ROBOT, 3)))
    with raises("E-LOG-018", "b.parquet", "deg/s"):
        chasles.identify(ROBOT, tmp_path)
    found = chasles.identify(ROBOT, tmp_path, skip_bad=True)
    assert "skipped: files in other units: 1" in found.notes
    assert found.samples == 4000


@pytest.mark.parametrize("suffix", [".mcap", ".db3"])
def test_bags(suffix: str, tmp_path: Path) -> None:
    """Positions, velocities and efforts are read from joint states, next to those of a gripper."""
    pytest.importorskip("rosbags")
    log = table(ROBOT, count=1500)
    file = bag(tmp_path / "bag", log, suffix)
    bare = {name: x for name, x in log.items() if not name.endswith((".qd", ".qdd"))}
    found, expected = (chasles.identify(ROBOT, x, cutoff=20.0) for x in (file, bare))
    np.testing.assert_allclose(found.base, expected.base, rtol=1e-4, atol=1e-6)
    file.write_bytes(file.read_bytes()[:2000])
    with raises("E-LOG-023", file.name):
        chasles.identify(ROBOT, file)


def bag(place: Path, log: dict[str, np.ndarray], suffix: str) -> Path:
    """Write a bag with joint states of the robot and of a gripper."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    kinds = store.types
    plugin = StoragePlugin.MCAP if suffix == ".mcap" else StoragePlugin.SQLITE3
    kind = "sensor_msgs/msg/JointState"
    with Writer(place, version=9, storage_plugin=plugin) as writer:
        connection = writer.add_connection("/joint_states", kind, typestore=store)
        for k, t in enumerate(log["t"]):
            stamp = 1_700_000_000 * 10**9 + round(1e9 * t)
            time = kinds["builtin_interfaces/msg/Time"](stamp // 10**9, stamp % 10**9)
            header = kinds["std_msgs/msg/Header"](time, "")
            for names in (list(ROBOT.joints), ["finger"]):
                arrays = [
                    np.array([log.get(f"{joint}.{x}", log["t"])[k] for joint in names])
                    for x in ("q", "qd", "tau")
                ]
                message = kinds[kind](header, names, *arrays)
                writer.write(connection, stamp, store.serialize_cdr(message, kind))
    return next(place.glob(f"*{suffix}"))


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("group", [0, 2**26])
def test_row_groups_column_by_column_and_side_by_side(
    group: int, threaded: bool, tmp_path: Path, monkeypatch: Any
) -> None:
    """Blocks have bounded length and the same values, with missing values as NaN."""
    monkeypatch.setattr(sources, "GROUP", group)
    monkeypatch.setattr(sources, "ROWS", 100)
    rng = np.random.default_rng(0)
    values = {name: rng.normal(size=1000) for name in ("t", "a.q", "b.q", "other")}
    values["b.q"][::7] = np.nan
    mask = {name: np.isnan(x) for name, x in values.items()}
    table = {name: pyarrow.array(x, mask=mask[name]) for name, x in values.items()}
    parquet.write_table(pyarrow.table(table), tmp_path / "log.parquet", row_group_size=350)
    parts = list(
        sources.blocks(str(tmp_path / "log.parquet"), {"q": ["a.q", "b.q", "missing"]}, threaded)
    )
    assert all(len(part["a.q"]) <= 100 for part in parts)
    for name in ("a.q", "b.q"):
        found = np.concatenate([part[name] for part in parts])
        assert np.array_equal(found, values[name], equal_nan=True)
    assert set(parts[0]) == {"a.q", "b.q"}
