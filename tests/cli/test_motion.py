"""`chasles motion`: values of its table and summary, for any chunk size; refusals."""

import csv
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from formats.serial import instant, random_links, text
from hypothesis import given, settings
from hypothesis import strategies as st
from support import close, raises
from test_cli import ARM
from typer.testing import CliRunner

import chasles
from chasles import writing
from chasles.cli import app
from chasles.cli.motion import Summary, Task, computed, run
from chasles.formats import motion as motions

PLANAR = chasles.robots.planar(2)
GRAVITY = np.array([0.4, 0.2, -9.6])


def invoke(*arguments: object) -> str:
    """Run a command that must succeed and return what it prints."""
    words = ["motion", *map(str, arguments)]
    result = CliRunner().invoke(app, words, env={"COLUMNS": "80", "NO_COLOR": "1"})
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: object) -> str:
    """Return the one line that a failing command prints."""
    result = CliRunner().invoke(app, ["motion", *map(str, arguments)])
    assert result.exit_code == 2, result.output
    assert result.output.startswith("error: ")
    assert result.output.count("\n") == 1
    return result.output


def table(path: Path) -> dict[str, np.ndarray]:
    with path.open(newline="") as stream:
        names, *rows = csv.reader(stream)
    return dict(zip(names, np.array(rows, dtype=float).T, strict=True))


def gather(found: dict[str, np.ndarray], part: str, entries: Sequence[str]) -> np.ndarray:
    return np.column_stack([found[f"{part}.{entry}"] for entry in entries])


def wave(t: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a smooth motion of n coordinates."""
    w = 1.0 + 0.3 * np.arange(n)
    a = np.outer(t, w)
    return np.sin(a), w * np.cos(a), -w * w * np.sin(a)


def write_csv(path: Path, columns: dict[str, np.ndarray]) -> Path:
    rows = np.column_stack(list(columns.values())).tolist()
    text = [",".join(columns), *(",".join(map(repr, row)) for row in rows)]
    path.write_text("\n".join(text) + "\n")
    return path


def named(
    robot: chasles.Robot, t: np.ndarray, q: np.ndarray, *rates: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the columns of a motion, as in a .csv file."""
    found = {"t": t}
    for names, values in zip(motions.columns(robot.model).values(), (q, *rates), strict=False):
        found |= dict(zip(names, values.T, strict=True))
    return found


@pytest.fixture
def puma(tmp_path: Path) -> tuple[chasles.Robot, Path, tuple[np.ndarray, ...]]:
    """Robot, a motion file of 11 samples, and the motion's values."""
    robot, t = chasles.robots.puma560(), np.linspace(0.0, 1.0, 11)
    q, qd, qdd = wave(t, 6)
    return robot, write_csv(tmp_path / "puma.csv", named(robot, t, q, qd, qdd)), (t, q, qd, qdd)


# Values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lines_for", "constant"), [("joints", True), ("samples", False)])
def test_the_program_of_fig_6(tmp_path: Path, lines_for: str, constant: bool) -> None:
    """A data file and a motion file agree with a recursion in NumPy, including reactions."""
    rng = np.random.default_rng(6)
    codes, n = [0, 1, 0], 5
    links = random_links(rng, codes)
    actions = np.repeat(rng.normal(size=(1, 6)), n, axis=0) if constant else rng.normal(size=(n, 6))
    (tmp_path / "r.dat").write_text(text(links, GRAVITY, actions[:1] if constant else actions))
    t = 0.25 * np.arange(n)
    state = np.stack(wave(t, len(codes)), axis=-1)
    width = 3 if lines_for == "joints" else 3 * len(codes)
    rows = [" ".join(map(repr, row)) for row in state.reshape(-1, width).tolist()]
    (tmp_path / "r.mot").write_text("0.25\n" + "\n".join(rows))
    out = tmp_path / "t.csv"
    words = invoke(tmp_path / "r.dat", tmp_path / "r.mot", "-o", out, "--all-links")
    assert "5 samples, 0 to 1 s" in words
    found = table(out)
    assert np.array_equal(found["t"], t)
    for k in range(n):
        expected = instant(links, GRAVITY, actions[k], *state[k].T)
        for i in range(len(codes)):
            frame, joint = f"dh{i + 1}", f"joint{i + 1}"
            M = gather(found, frame, [f"M{a}{b}" for a in "123" for b in "1234"])[k]
            close(M.reshape(3, 4), expected.M[i][:3], 1e-13)
            V = gather(found, frame, ["wx", "wy", "wz", "vx", "vy", "vz"])[k]
            close(V, [*expected.w[i], *expected.v[i]], 1e-13)
            A = gather(found, frame, ["wdx", "wdy", "wdz", "ax", "ay", "az"])[k]
            close(A, [*expected.wd[i], *expected.a[i]], 1e-13)
            close([found[f"{joint}.tau"][k]], [expected.tau[i]], 1e-11)
            T = gather(found, f"link{i + 1}", [f"M{a}{b}" for a in "123" for b in "1234"])[k]
            R, p = T.reshape(3, 4)[:, :3], T.reshape(3, 4)[:, 3]
            force = R @ gather(found, joint, ["fx", "fy", "fz"])[k]
            close(force, expected.force[i], 1e-12)
            moment = R @ gather(found, joint, ["mx", "my", "mz"])[k] + np.cross(p, force)
            close(moment, expected.moment[i], 1e-12)


def test_table_has_what_the_robot_computes(
    puma: tuple[chasles.Robot, Path, tuple[np.ndarray, ...]], tmp_path: Path
) -> None:
    robot, file, (t, q, qd, qdd) = puma
    out = tmp_path / "out.csv"
    invoke("puma560", file, "--frame", "tool", "--frame", "link2", "-o", out, "--at-world")
    found = table(out)
    assert np.array_equal(found.pop("t"), t)
    expected = []
    for frame in ("tool", "link2"):
        pose = robot.forward_kinematics(q, frame=frame)
        expected += [pose[:, :3].reshape(-1, 12)]
        expected += [robot.frame_velocity(q, qd, frame=frame, at="world")]
        expected += [robot.frame_acceleration(q, qd, qdd, frame=frame, at="world")]
    reactions = robot.joint_reactions(q, qd, qdd)
    expected += [robot.inverse_dynamics(q, qd, qdd), reactions.reshape(len(t), -1)]
    expected += [robot.kinetic_energy(q, qd), robot.potential_energy(q), q, qd, qdd]
    assert np.array_equal(np.column_stack(list(found.values())), np.column_stack(expected))
    assert list(found)[:2] == ["tool.M11", "tool.M12"]
    assert list(found)[48:55] == [*(f"joint{k}.tau" for k in range(1, 7)), "joint1.mx"]


def test_default_frame_is_the_last(
    puma: tuple[chasles.Robot, Path, tuple[np.ndarray, ...]], tmp_path: Path
) -> None:
    robot, file, _ = puma
    invoke("puma560", file, "-o", tmp_path / "out.csv")
    assert list(table(tmp_path / "out.csv"))[1] == f"{robot.frames[-1]}.M11"


@pytest.mark.parametrize("kind", ["constant.txt", "each.txt", "each.csv", "each.npz"])
def test_forces_act_on_their_frame(
    puma: tuple[chasles.Robot, Path, tuple[np.ndarray, ...]], tmp_path: Path, kind: str
) -> None:
    """Forces come before couples in the file, along the frame's axes at its origin."""
    robot, file, (t, q, qd, qdd) = puma
    w = np.random.default_rng(1).normal(size=(1 if "constant" in kind else len(t), 6))
    path = tmp_path / kind
    if kind.endswith((".csv", ".npz")):
        names, order = ("cx", "cy", "cz", "fz", "fy", "fx"), [3, 4, 5, 2, 1, 0]
        columns = dict(zip(names, w[:, order].T, strict=True))
        write_csv(path, columns) if kind.endswith(".csv") else np.savez(path, **columns)
    else:
        path.write_text("# force, couple\n" + "\n".join(" ".join(map(repr, r)) for r in w.tolist()))
    out = tmp_path / "out.csv"
    words = invoke("puma560", file, "-o", out, "--forces", path, "--forces-on", "link3")
    f_ext = {"link3": chasles.Wrench(np.roll(w, 3, axis=1), axes="frame", at="frame")}
    found, expected = table(out), robot.inverse_dynamics(q, qd, qdd, f_ext=f_ext)
    close(gather(found, "joint1", ["tau"])[:, 0], expected[:, 0], 1e-13)
    close(found["joint3.tau"], expected[:, 2], 1e-13)
    reactions = robot.joint_reactions(q, qd, qdd, f_ext=f_ext)
    close(found["joint2.mz"], reactions[:, 1, 2], 1e-13)
    V = robot.frame_velocity(q, qd, frame="link3", axes="frame")
    work = np.trapezoid(np.sum(np.roll(w, 3, axis=1) * V, axis=1), t)
    assert f"{work:.5g} J by external forces" in words
    assert "external forces: on frame 'link3'" in words


def test_a_file_of_forces_replaces_those_of_the_robot(tmp_path: Path) -> None:
    links = random_links(np.random.default_rng(2), [0])
    robot, mot, zero = (tmp_path / name for name in ("r.dat", "r.mot", "zero.txt"))
    robot.write_text(text(links, GRAVITY, np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])))
    mot.write_text("0.1 0.2 0.3")
    zero.write_text("0 0 0 0 0 0")
    for name, options in (("with", ()), ("without", ("--forces", zero))):
        invoke(robot, mot, "-o", tmp_path / f"{name}.csv", *options)
    push, none = (table(tmp_path / f"{name}.csv") for name in ("with", "without"))
    still = instant(links, GRAVITY, np.zeros(6), *np.array([[0.1], [0.2], [0.3]]))
    close(none["joint1.tau"], still.tau, 1e-12)
    assert abs(push["joint1.tau"][0] - none["joint1.tau"][0]) > 0.1
    assert next(iter(push)) == "sample"


def test_robots_with_any_joints(tmp_path: Path) -> None:
    """A floating base has numbered columns; a mimic joint has a reaction but no coordinate."""
    (tmp_path / "arm.urdf").write_text(ARM.format(izz=0.01))
    robot = chasles.load(tmp_path / "arm.urdf", floating=True)
    rng = np.random.default_rng(0)
    q, (qd, qdd) = robot.random(rng, size=4), rng.normal(size=(2, 4, robot.nv))
    columns = named(robot, np.arange(4.0), q, qd, qdd)
    assert [name for name in columns if name.startswith("root_joint.q")][:9] == [
        *(f"root_joint.q{k}" for k in range(7)),
        "root_joint.qd0",
        "root_joint.qd1",
    ]
    turned = dict(reversed(columns.items()))
    file, out = write_csv(tmp_path / "m.csv", turned), tmp_path / "t.csv"
    words = invoke(tmp_path / "arm.urdf", file, "--floating", "-o", out)
    found, tau = table(out), robot.inverse_dynamics(q, qd, qdd)
    assert np.array_equal(gather(found, "root_joint", [f"tau{k}" for k in range(6)]), tau[:, :6])
    assert np.array_equal(found["elbow.tau"], tau[:, -1])
    assert "grip.fx" in found
    assert "grip.tau" not in found
    assert re.search(r"root_joint2 +[\d.]+ +[\d.]+ +N m", words)
    assert re.search(r"root_joint3 +[\d.]+ +[\d.]+ +N *\n", words)


# Summary and plot ------------------------------------------------------------------------------


def silent(_: int) -> None:
    pass


def test_summary(puma: tuple[chasles.Robot, Path, tuple[np.ndarray, ...]]) -> None:
    robot, file, (_, q, qd, qdd) = puma
    summary = run(Task(robot, "puma560", file, ("tool",)), None, silent)
    tau = robot.inverse_dynamics(q, qd, qdd)
    assert np.array_equal(summary.peak, np.max(np.abs(tau), axis=0))
    close(summary.rms, np.sqrt(np.mean(tau**2, axis=0)), 1e-14)
    V = robot.frame_velocity(q, qd, frame="tool")[:, 3:]
    A = robot.frame_acceleration(q, qd, qdd, frame="tool")[:, 3:]
    assert summary.speed == np.max(np.linalg.norm(V, axis=1))
    assert summary.acceleration == np.max(np.linalg.norm(A, axis=1))
    words = invoke("puma560", file, "--frame", "tool")
    assert "puma560: 11 samples, 0 to 1 s" in words
    for k in range(6):
        assert re.search(rf"joint{k + 1} +{summary.peak[k]:.5g} +{summary.rms[k]:.5g} +N m", words)
    assert f"peak speed {summary.speed:.5g} m/s" in words


def test_work_becomes_energy(tmp_path: Path) -> None:
    """Errors are those of the trapezoidal rule: half the step gives a quarter of the error."""
    robot = chasles.robots.stanford_arm()
    force = tmp_path / "f.txt"
    force.write_text("3 -2 1 0.5 0.2 -0.1")
    errors = []
    for n in (101, 201):
        t = np.linspace(0.0, 2.0, n)
        file = write_csv(tmp_path / f"{n}.csv", named(robot, t, *wave(t, 6)))
        summary = run(Task(robot, "stanford_arm", file, forces=force), None, silent)
        assert summary.work is not None
        errors.append(abs(summary.work.sum() - summary.energy[1] + summary.energy[0]))
    assert errors[1] < 0.05
    assert 3.5 < errors[0] / errors[1] < 4.5


def test_plot(puma: tuple[chasles.Robot, Path, tuple[np.ndarray, ...]], tmp_path: Path) -> None:
    _, file, _ = puma
    assert "Plot saved to" in invoke("puma560", file, "--plot", tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "p.png").stat().st_size < 150_000
    invoke("puma560", file, "--plot", tmp_path / "p.svg")
    assert "</svg>" in (tmp_path / "p.svg").read_text()


# Chunks and differences ------------------------------------------------------------------------


@pytest.mark.parametrize("differentiate", [False, True])
@pytest.mark.parametrize("chunk", [3, 4, 7, 29, 30])
def test_chunks_do_not_matter(tmp_path: Path, chunk: int, differentiate: bool) -> None:
    """The file is bitwise identical and the summary equal, for any chunk size."""
    robot = PLANAR
    t = np.cumsum(np.random.default_rng(4).uniform(0.01, 0.02, 30))
    given = wave(t, 2)[: 1 if differentiate else 3]
    file = write_csv(tmp_path / "m.csv", named(robot, t, *given))
    forces = tmp_path / "f.txt"
    rows = np.random.default_rng(5).normal(size=(30, 6)).tolist()
    forces.write_text("\n".join(" ".join(map(repr, row)) for row in rows))
    task = Task(robot, "planar:2", file, forces=forces, differentiate=differentiate)
    results: list[tuple[bytes, Summary]] = []
    for size in (chunk, 1000):
        out = tmp_path / f"{size}.csv"
        summary = run(task, out, silent, chunk=size)
        results.append((out.read_bytes(), summary))
    assert results[0][0] == results[1][0]
    parts, whole = results[0][1], results[1][1]
    assert np.array_equal(parts.peak, whole.peak)
    assert np.array_equal(parts.samples, whole.samples)
    close(parts.rms, whole.rms, 1e-14)
    assert parts.work is not None
    assert whole.work is not None
    close(parts.work, whole.work, 1e-12)


def test_long_motions_need_no_more_memory(tmp_path: Path) -> None:
    robot = chasles.robots.planar(1)
    peaks = []
    for n in (1000, 10000):
        t = 1e-3 * np.arange(n)
        file = write_csv(tmp_path / f"{n}.csv", named(robot, t, *wave(t, 1)))
        task = Task(robot, "planar:1", file)
        run(task, None, silent, chunk=200)
        tracemalloc.start()
        run(task, tmp_path / f"out{n}.csv", silent, chunk=200)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + 2001 * 4 * 8


def test_instants_before_a_bad_line_are_computed(tmp_path: Path) -> None:
    file = tmp_path / "m.mot"
    file.write_text("0 0 0\n" * 9 + "0 0 x\n")
    states = computed(Task(chasles.robots.planar(1), "planar:1", file), chunk=4)
    assert len(next(states).tau) == len(next(states).tau) == 4
    with raises("E-FILE-026", "10", "'x'"):
        next(states)


@pytest.mark.parametrize("given", [1, 2])
def test_differences_are_of_second_order(tmp_path: Path, given: int) -> None:
    """Derivatives of a parabola are exact, and errors of other motions are of second order.

    At the ends, errors are of first order if only positions are given.
    """
    robot = PLANAR
    errors = []
    for n in (41, 81):
        x = np.linspace(0.0, 1.0, n)
        t = x + 0.2 * x * x
        exact = wave(t, 2)
        file = write_csv(tmp_path / "m.csv", named(robot, t, *exact[:given]))
        task = Task(robot, "planar:2", file, differentiate=True)
        found = next(computed(task)).motion
        errors.append([np.max(np.abs(found.qdd - exact[2])[k : n - k]) for k in (0, 2)])
    inside, ends = np.divide(errors[0], errors[1])[::-1]
    assert 3.5 < inside < 4.7
    assert ends > (1.7 if given == 1 else 3.5)
    t = np.array([0.0, 0.1, 0.4, 0.5, 0.9])
    q = np.column_stack([t**2, 3.0 * t])
    file = write_csv(tmp_path / "p.csv", named(robot, t, q))
    found = next(computed(Task(robot, "planar:2", file, differentiate=True))).motion
    close(found.qd, np.column_stack([2.0 * t, np.full(5, 3.0)]), 1e-13)
    close(found.qdd, np.column_stack([np.full(5, 2.0), np.zeros(5)]), 1e-12)


def test_differences_of_a_floating_base_follow_its_rotation(tmp_path: Path) -> None:
    """Velocities of a constant twist are exact, although the quaternions are not linear in time."""
    (tmp_path / "arm.urdf").write_text(ARM.format(izz=0.01))
    robot = chasles.load(tmp_path / "arm.urdf", floating=True)
    twist = np.random.default_rng(7).normal(size=robot.nv)
    t = np.linspace(0.0, 2.0, 9)
    q = robot.integrate(robot.random(seed=7), t[:, None] * twist)
    file = write_csv(tmp_path / "m.csv", named(robot, t, q))
    task = Task(robot, str(tmp_path / "arm.urdf"), file, differentiate=True)
    found = next(computed(task)).motion
    close(found.qd, np.tile(twist, (9, 1)), 1e-12)
    close(found.qdd, np.zeros((9, robot.nv)), 1e-11, scale=1.0)


def test_times_by_step(tmp_path: Path) -> None:
    (tmp_path / "m.mot").write_text("0 0 0\n1 0 0\n")
    invoke("planar:1", tmp_path / "m.mot", "--step", "0.5", "-o", tmp_path / "t.csv")
    assert np.array_equal(table(tmp_path / "t.csv")["t"], [0.0, 0.5])


# Output files ----------------------------------------------------------------------------------


def test_parquet_has_the_numbers_of_the_csv(
    puma: tuple[chasles.Robot, Path, tuple[np.ndarray, ...]], tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    robot, file, _ = puma
    task = Task(robot, "puma560", file, ("tool", "link1"))
    for name in ("t.csv", "t.parquet"):
        run(task, tmp_path / name, silent, chunk=4)
    expected, found = table(tmp_path / "t.csv"), parquet.read_table(tmp_path / "t.parquet")
    assert found.column_names == list(expected)
    for name, values in expected.items():
        assert np.array_equal(found[name].to_numpy(), values)


def test_parquet_without_pyarrow_says_what_to_install(
    puma: tuple[chasles.Robot, Path, tuple[np.ndarray, ...]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = refused("puma560", puma[1], "-o", tmp_path / "t.parquet")
    assert "run pip install 'chasles[data]'" in message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["puma.csv"]


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    """A limit on file sizes acts like a full disk."""
    (tmp_path / "m.mot").write_text("0.1 0.2 0.3\n" * 3000)
    (tmp_path / "t.csv").write_text("old")
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000)); "
        "from chasles.cli import main; main()"
    )
    words = ["motion", "planar:1", str(tmp_path / "m.mot"), "-o", str(tmp_path / "t.csv")]
    words.append("--overwrite")
    result = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert result.returncode == 2
    assert re.fullmatch(
        r"error: .*t\.csv: File too large; choose another path; nothing was written.*\n",
        result.stderr,
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.mot", "t.csv"]
    assert (tmp_path / "t.csv").read_text() == "old"


def test_files_are_whole_or_not_there(tmp_path: Path) -> None:
    target, link = tmp_path / "a.csv", tmp_path / "link.csv"
    link.symlink_to(target)

    def broken() -> None:
        with writing.whole(link) as part:
            part.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken()
    assert [path.name for path in tmp_path.iterdir()] == ["link.csv"]
    with writing.whole(link) as part:
        part.write_text("whole")
        assert not target.exists()
    assert link.is_symlink()
    assert target.read_text() == "whole"


# Refusals --------------------------------------------------------------------------------------

HEADER = "t,joint1.q,joint1.qd,joint1.qdd,joint2.q,joint2.qd,joint2.qdd"
ROW = "{t},0,0,0,0,0,0"
GOOD = "\n".join([HEADER, *(ROW.format(t=t) for t in range(4))]) + "\n"


def without(*columns: str) -> str:
    """Return the valid motion without the given columns."""
    names = HEADER.split(",")
    kept = [k for k, name in enumerate(names) if name not in columns]
    rows = [line.split(",") for line in GOOD.splitlines()]
    return "\n".join(",".join(row[k] for k in kept) for row in rows)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.csv", "", "m.csv:1: the file is empty; begin the file with the column"),
        ("m.csv", HEADER + "\n", "m.csv: the file contains no samples"),
        ("m.csv", GOOD + "5,0,0\n", "m.csv:6: the row has 3 values instead of 7: 't', 'joint1.q'"),
        ("m.csv", GOOD + "5,0,0,0,0,0,0,0\n", "m.csv:6: the row has 8 values instead of 7"),
        ("m.csv", GOOD + "5,0,0,zero,0,0,0\n", "m.csv:6: joint1.qdd is 'zero'; give a finite"),
        ("m.csv", GOOD + "5,0,0,0,,0,0\n", "m.csv:6: joint2.q is ''; give a finite number"),
        ("m.csv", "# c\n\n" + GOOD + "5,0,nan,0,0,0,0\n", "m.csv:8: joint1.qd is 'nan'"),
        ("m.csv", GOOD + "5,0,inf,0,0,0,0\n", "m.csv:6: joint1.qd is 'inf'"),
        ("m.csv", GOOD + "5,0,1_0,0,0,0,0\n", "m.csv:6: joint1.qd is '1_0'"),
        (
            "m.csv",
            GOOD + ROW.format(t=3),
            "m.csv:6: time 3.0 is not later than the previous time 3.0; sort",
        ),
        (
            "m.csv",
            GOOD + ROW.format(t=-1),
            "m.csv:6: time -1.0 is not later than the previous time 3.0",
        ),
        ("m.csv", GOOD.replace("joint2.q,", "joint9.q,"), "unknown column 'joint9.q'; did you"),
        ("m.csv", GOOD.replace("joint2.q,", "elbow,"), "m.csv:1: unknown column 'elbow'; it has"),
        ("m.csv", GOOD.replace("joint2.q,", "joint1.q,"), "column 'joint1.q' appears twice"),
        ("m.csv", without("joint2.q"), "m.csv:1: column 'joint2.q' is missing; add the column"),
        ("m.csv", without("joint1.qd"), "m.csv:1: column 'joint1.qd' is missing; add the column"),
        ("m.csv", without("joint1.qd", "joint2.qd"), "has no velocities"),
        (
            "m.csv",
            without("joint1.qdd", "joint2.qdd"),
            "no accelerations (.qdd); add the columns, or",
        ),
        ("m.csv", "\0,t\n", "m.csv:1: "),
        ("m.csv", b"PK\x03\x04\xff\xfe" * 20, "m.csv:1: "),
        ("m.csv", "x" * 200_000, "m.csv:1: "),
        ("m.mot", "", "m.mot: the file contains no samples"),
        ("m.mot", "0.1\n", "m.mot: the file contains no samples"),
        ("m.mot", "0\n0 0 0\n0 0 0\n", "m.mot:1: the time step is 0.0; give a positive time step"),
        ("m.mot", "x\n0 0 0\n0 0 0\n", "m.mot:1: time step is 'x'; give a finite number"),
        (
            "m.mot",
            "0 0 0\n0 0\n",
            "m.mot:2: the line has 2 numbers; give 3 numbers for one joint (q qd qdd), or 6",
        ),
        ("m.mot", "0 0 0\n0 0 0 0 0 0\n", "m.mot:2: the line has 6 numbers; give 3 numbers"),
        ("m.mot", "0 0 0\n0 0 0\n0 0 0\n", "m.mot:3: the last sample has only 1 of 2 joints"),
        ("m.mot", "0 0 0\n0 nan 0\n", "m.mot:2: joint2.qd is 'nan'; give a finite number"),
        ("m.mot", "0 0 0 0 0 x\n", "m.mot:1: joint2.qdd is 'x'"),
        ("m.mot", b"\x00\xff\x00\xfe" * 99, "m.mot:1: "),
    ],
)
def test_bad_motions(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    said = refused("planar:2", path, "-o", tmp_path / "t.csv")
    assert message in said
    assert len(said) < 500 + len(str(path))
    assert [found.name for found in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("f.txt", "", "f.txt: the file contains no forces"),
        ("f.txt", "1 2 3\n", "f.txt:1: the row has 3 values instead of 6: 'fx'"),
        ("f.txt", "1 2 3 4 5 x\n", "f.txt:1: cz is 'x'; give a finite number"),
        (
            "f.txt",
            "1 2 3 4 5 6\n" * 3,
            "f.txt: the file has forces for 3 samples, but the motion has more samples; give one ",
        ),
        (
            "f.txt",
            "1 2 3 4 5 6\n" * 5,
            "f.txt: the file has more rows of forces than the motion has samples",
        ),
        ("f.csv", "fx,fy,fz,cx,cy\n1,2,3,4,5\n", "f.csv:1: column 'cz' is missing; add the column"),
        ("f.csv", "fx,fy,fz,mx,my,mz\n", "f.csv:1: unknown column 'mx'"),
        ("f.csv", "fx,fy,fz,cx,cy,cz\n1,2,3\n", "f.csv:2: the row has 3 values instead of 6"),
    ],
)
def test_bad_forces(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / "m.csv").write_text(GOOD)
    (tmp_path / name).write_text(content)
    options = ("--forces", tmp_path / name, "-o", tmp_path / "t.csv")
    assert message in refused("planar:2", tmp_path / "m.csv", *options)
    assert not (tmp_path / "t.csv").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "t.txt"], "unknown table format; use a file name ending in .csv, .npz or .parquet"),
        (["-o", "no/such/t.csv"], "the folder does not exist"),
        (["-o", "folder.csv"], "folder.csv: the path is a directory"),
        (["-o", "m.csv"], "m.csv: the file already exists"),
        (["-o", "n" * 300 + ".csv"], "File name too long"),
        (["--plot", "p.gif"], "unknown plot format"),
        (["--plot", "no/such/p.png"], "the folder does not exist"),
        (["--frame", "tipp"], "no frame 'tipp'; did you mean 'tip'"),
        (["--forces-on", "tip"], "add --forces, or omit"),
        (["--forces", "m.csv", "--forces-on", "x"], "no frame 'x'"),
        (["--forces", "none.txt"], "none.txt: the file does not exist"),
        (["--step", "0.1"], "the file already contains sample times; omit the time step"),
        (["--step", "-1"], "give a positive number of seconds"),
        (["--step", "nan"], "give a positive number of seconds"),
    ],
)
def test_bad_options(
    tmp_path: Path, options: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.csv").write_text(GOOD)
    Path("folder.csv").mkdir()
    assert message in refused("planar:2", "m.csv", *options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.csv", "m.csv"]


@pytest.mark.parametrize(
    ("robot", "content", "options", "message"),
    [
        ("planar:2", None, [], "the file does not exist"),
        ("quadruped", "0 0 0\n", [], "a file without a header supports"),
        ("planar:1", "0 0 0\n1 1 1\n2 0 0\n", ["--differentiate"], ""),
    ],
)
def test_plain_motions(
    tmp_path: Path, robot: str, content: str | None, options: list[str], message: str
) -> None:
    path = tmp_path / "m.mot"
    if content is not None:
        path.write_text(content)
    if message:
        assert message in refused(robot, path, *options)
    else:
        assert "3 samples\n" in invoke(robot, path, *options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("joint1.q\n0\n1\n2\n", "requires the times of the samples; add a column t, or use --step"),
        (
            "t,joint1.q\n0,0\n1,1\n",
            "2 samples, too few for --differentiate; give a motion with at least three samples",
        ),
        ("t,joint1.q\n", "the file contains no samples"),
    ],
)
def test_differences_that_cannot_be_made(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "m.csv").write_text(content)
    assert message in refused("planar:1", tmp_path / "m.csv", "--differentiate")


def test_a_zero_quaternion_has_its_line(tmp_path: Path) -> None:
    robot = chasles.robots.quadruped()
    q = np.tile(robot.neutral(), (6, 1))
    q[4, :4] = 0.0
    rates = np.zeros((6, robot.nv))
    file = write_csv(tmp_path / "m.csv", named(robot, np.arange(6.0), q, rates, rates))
    assert "m.csv:6: the quaternion of joint" in refused("quadruped", file)


def test_results_that_overflow_are_refused(tmp_path: Path) -> None:
    (tmp_path / "m.mot").write_text("0 0 0\n0 1e200 0\n")
    said = refused("planar:1", tmp_path / "m.mot", "-o", tmp_path / "t.csv")
    assert "the results at sample 1 are not finite" in said
    assert [path.name for path in tmp_path.iterdir()] == ["m.mot"]


@settings(max_examples=200)
@given(
    name=st.sampled_from(["m.csv", "m.mot"]),
    content=st.one_of(
        st.text(max_size=40),
        st.lists(st.sampled_from([*HEADER.split(","), "0", "1e999", "x", ",", "\n"])).map("".join),
        st.tuples(st.integers(0, len(GOOD)), st.text(max_size=3)).map(
            lambda cut: GOOD[: cut[0]] + cut[1] + GOOD[cut[0] + 1 :]
        ),
    ),
)
def test_any_text_is_a_motion_or_an_error_with_its_file(
    name: str, content: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    message = str(path)
    try:
        for part in motions.read(path, PLANAR.model, chunk=2):
            assert np.all(np.isfinite(part.q))
            assert part.q.shape[1] == 2
    except chasles.ModelError as error:
        message = str(error)
    assert message.startswith(str(path))


def test_bad_robots_are_refused_first(tmp_path: Path) -> None:
    (tmp_path / "r.dat").write_text("1\n0 0 0 0 0\n")
    assert "r.dat:2: link 1: the file ends after 5 of 6" in refused(
        tmp_path / "r.dat", tmp_path / "none.mot"
    )


def test_a_motion_keeps_loops_closed(tmp_path: Path) -> None:
    """No torques are computed for positions at which the loops are open."""
    robot = chasles.robots.slider_crank()
    turn = robot.assemble(np.linspace(0.5, 0.6, 5)[:, None])
    file = tmp_path / "turn.csv"
    head = ",".join(["t", *(f"{name}.q" for name in robot.joints)])
    rows = np.column_stack([np.arange(5.0), turn])
    np.savetxt(file, rows, delimiter=",", header=head, comments="", fmt="%.17g")
    result = CliRunner().invoke(app, ["motion", "slider_crank", str(file), "--differentiate"])
    assert result.exit_code == 0, result.output
    assert "exclude loop forces" in " ".join(result.output.split())
    rows[3, 2] += 0.1
    np.savetxt(file, rows, delimiter=",", header=head, comments="", fmt="%.17g")
    result = CliRunner().invoke(app, ["motion", "slider_crank", str(file), "--differentiate"])
    assert result.exit_code != 0
    assert "are not closed at sample 3" in result.output


def test_all_links_leave_the_summary_to_the_frame_that_is_asked_for(tmp_path: Path) -> None:
    """The summary is for the requested frame or the last one, not for the base, which is first."""
    t = np.linspace(0.0, 1.0, 11)
    rows = np.column_stack([t, *wave(t, 2)])
    names = ["t", *(f"joint{k}{rate}" for rate in (".q", ".qd", ".qdd") for k in (1, 2))]
    file = tmp_path / "wave.csv"
    np.savetxt(file, rows, delimiter=",", header=",".join(names), comments="")
    last = PLANAR.frames[-1]
    for asked, frame in (((), last), (("--frame", "link2"), "link2")):
        alone, every = (invoke("planar:2", file, *asked, *all_) for all_ in ((), ("--all-links",)))
        assert alone == every
        assert f"frame '{frame}': peak speed" in every
        assert "peak speed 0 m/s" not in every


# Motions written by other commands -----------------------------------------------------------


@pytest.mark.parametrize("name", ["folder", "folder/motion.npz", "t.csv", "t.parquet"])
def test_motions_of_simulate_are_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder, its file and both tables give the torques of the simulated states."""
    monkeypatch.chdir(tmp_path)
    words = ["simulate", "puma560", "--random", "2", "--duration", "0.02", "--no-plots"]
    tables = ["--table", name] if name.startswith("t.") else []
    result = CliRunner().invoke(app, [*words, "-o", "folder", *tables])
    assert result.exit_code == 0, result.output
    invoke("puma560", name, "--differentiate", "-o", "found.csv", "--frame", "tool")
    robot, found = chasles.robots.puma560(), table(tmp_path / "found.csv")
    with np.load("folder/motion.npz") as file:
        t, q, qd = file["t"], file["q"], file["qd"]
    pose = robot.forward_kinematics(q, frame="tool")
    close(gather(found, "tool", ["M14", "M24", "M34"]), pose[:, :3, 3], 1e-12)
    tau = gather(found, "joint2", ["tau"])[2:-2, 0]
    assert np.max(np.abs(tau)) < 1e-2 * np.max(np.abs(robot.gravity_forces(q)))  # free fall
    assert len(found["t"]) == len(t) == len(qd)


def test_parquet_motions_are_refused_by_name(tmp_path: Path) -> None:
    """Missing columns, non-finite values, decreasing times and invalid files are refused."""
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    good = {"t": [0.0, 0.1, 0.2], "joint1.q": [0.0, 1.0, 2.0], "joint2.q": [0.0, 0.5, 1.0]}
    for change, said in (
        ({"joint2.q": None}, ("E-FILE-089", "joint2.q")),
        ({"joint1.q": [0.0, float("nan"), 1.0]}, ("E-FILE-091", "row 1")),
        ({"t": [0.0, 0.2, 0.1]}, ("E-FILE-090",)),
        ({"joint1.q": ["a", "b", "c"]}, ("E-FILE-088",)),
    ):
        columns = {name: x for name, x in (good | change).items() if x is not None}
        parquet.write_table(arrow.table(columns), tmp_path / "m.parquet")
        with raises(*said):
            list(motions.read(tmp_path / "m.parquet", PLANAR.model))
    (tmp_path / "m.parquet").write_bytes(b"PAR1 no table")
    with raises("E-FILE-086"):
        list(motions.read(tmp_path / "m.parquet", PLANAR.model))
