"""Written motions of every kind of `chasles trajectory` have their closed forms and limits."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import chasles
from chasles.cli import app
from chasles.cli.commands.trajectory import KINDS
from chasles.formats import motion

FROM, TO = np.array([0.3, 0.5, -1.0, 0.2, 0.9, -0.4]), np.array([0.5, 0.3, -0.8, 0.2, 1.0, -0.1])
SMOOTH = {
    "minimum-jerk": (0, 0, 0, 10, -15, 6),
    "quintic": (0, 0, 0, 10, -15, 6),
    "minimum-snap": (0, 0, 0, 0, 35, -84, 70, -20),
    "septic": (0, 0, 0, 0, 35, -84, 70, -20),
    "cubic": (0, 0, 3, -2),
    "spline": (0, 1),
}
"""Polynomials in t / duration of the kinds between two configurations."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str, status: int = 0, robot: str = "puma560") -> str:
    result = CliRunner().invoke(app, ["trajectory", robot, *words, "-o", "move.csv"])
    assert result.exit_code == status, result.output
    return str(result.output)


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_binary_motions_are_read_by_other_commands(suffix: str) -> None:
    """The written motion has the same states, and inverse dynamics gives the same torques."""
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    words = ["--to", "joint1=0.5", "--duration", "0.5"]
    run(*words)
    arguments = ["trajectory", "puma560", *words, "-o", f"move{suffix}"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    robot = chasles.robots.puma560()
    moves = [next(motion.read(f"move{x}", robot.model)) for x in (".csv", suffix)]
    for name in ("t", "q", "qd", "qdd"):
        np.testing.assert_array_equal(*(getattr(move, name) for move in moves))
    for file, table in ((f"move{suffix}", "states.csv"), ("states.csv", "again.csv")):
        result = CliRunner().invoke(app, ["motion", "puma560", file, "-o", table])
        assert result.exit_code == 0, result.output
    assert Path("states.csv").read_bytes() == Path("again.csv").read_bytes()


def flag(name: str, numbers: np.ndarray) -> str:
    return f"--{name}={','.join(map(repr, numbers.tolist()))}"


def written() -> tuple[np.ndarray, np.ndarray]:
    """Return times and positions of the file, read without chasles."""
    names = Path("move.csv").read_text("utf-8").splitlines()[0].split(",")
    table = np.loadtxt("move.csv", delimiter=",", skiprows=1)
    places = [k for k, name in enumerate(names) if name.endswith(".q")]
    return table[:, names.index("t")], table[:, places]


def tool(q: np.ndarray) -> np.ndarray:
    return np.asarray(chasles.robots.puma560().forward_kinematics(q, frame="tool"))[..., :3, 3]


def test_postures_may_be_rows_of_a_motion_file() -> None:
    """--from takes the first row and --to the last row, as `chasles reach` writes them."""
    run(flag("from", FROM), flag("to", TO), "--duration", "2")
    Path("move.csv").rename("given.csv")
    run("--from", "given.csv", "--to", "given.csv")
    q = written()[1]
    np.testing.assert_allclose(q[[0, -1]], [FROM, TO], rtol=0, atol=1e-14)


def test_numbers_may_be_separated_by_spaces() -> None:
    run("--to", " ".join(map(repr, TO.tolist())), "--duration", "2")
    np.testing.assert_allclose(written()[1][-1], TO, rtol=0, atol=1e-14)


def test_peaks_have_units() -> None:
    said = run("--to", "0.1", "--duration", "1", robot="planar:1")
    assert "rad/s, rad/s², rad/s³" in said


@pytest.mark.parametrize("kind", SMOOTH)
def test_polynomials_between_two_postures(kind: str) -> None:
    run("--kind", kind, flag("from", FROM), flag("to", TO), "--duration", "2")
    t, q = written()
    share = np.polynomial.Polynomial(SMOOTH[kind])(t / 2.0)
    assert np.abs(q - FROM - np.outer(share, TO - FROM)).max() < 1e-12
    assert t[-1] == 2.0


@pytest.mark.parametrize("kind", ["trapezoid", "s-curve", "time-optimal"])
def test_fastest_motions_between_two_postures(kind: str) -> None:
    words = ["--velocity=2", "--acceleration=4"] + ["--jerk=20"] * (kind == "s-curve")
    run("--kind", kind, flag("from", FROM), flag("to", TO), *words, "--step", "0.001")
    t, q = written()
    assert np.abs(q[[0, -1]] - [FROM, TO]).max() < 1e-9
    rates = np.abs(np.diff(q, axis=0) / np.diff(t)[:, None])
    assert rates.max() < 2.0 + 1e-9
    # The largest displacement is 0.3 rad, at 4 rad/s^2, and for s-curve also at 20 rad/s^3.
    shortest = {"s-curve": 4.0 * (0.3 / 2.0 / 20.0) ** (1 / 3)}.get(kind, 2.0 * (0.3 / 4.0) ** 0.5)
    assert abs(t[-1] - shortest) < 1e-9 if kind != "time-optimal" else t[-1] < shortest * 1.01


def test_tables_of_postures() -> None:
    middle = 0.5 * (FROM + TO) + 0.1
    names = [f"joint{k}.q" for k in range(1, 7)]
    rows = [",".join(map(repr, row.tolist())) for row in (FROM, middle, TO)]
    Path("points.csv").write_text("\n".join([",".join(names), *rows]), "utf-8")
    run("--kind", "spline", "--through", "points.csv")
    t, q = written()
    assert np.abs(q[np.searchsorted(t, [0.0, 1.0, 2.0])] - [FROM, middle, TO]).max() < 1e-9


def test_lines_arcs_and_paths_of_the_tool() -> None:
    p = tool(FROM)
    a, b, on = p - [0.1, 0.0, 0.0], p - [0.1, -0.1, 0.0], p - [0.12, -0.05, 0.0]
    start, ends = flag("from", FROM), [flag("position", a), flag("position", b)]
    assert "line of frame 'tool'" in run("--kind", "line", start, ends[0])
    x = tool(written()[1]) - p
    assert np.abs(x[:, 1:]).max() < 2e-6
    assert np.abs(x[-1] - [-0.1, 0.0, 0.0]).max() < 1e-9
    center = a
    words = [flag("via", center - [0.0, 0.1, 0.0]), flag("position", center - [0.1, 0.0, 0.0])]
    run("--kind", "arc", start, *words, "--overwrite")
    x = tool(written()[1]) - center
    assert np.abs(np.linalg.norm(x, axis=-1) - 0.1).max() < 2e-6
    assert np.abs(x[-1] - [-0.1, 0.0, 0.0]).max() < 1e-9
    words = ["--via=line", flag("via", on), "--blend=0.02", "--overwrite", "--step=0.002"]
    run("--kind", "path", start, *ends, *words)
    x = tool(written()[1])
    assert np.abs(x[-1] - b).max() < 1e-9
    far = np.linalg.norm(x - a, axis=-1).min()
    assert 1e-3 < far < 0.02
    last = x[len(x) * 3 // 4 :]
    assert np.abs(np.linalg.norm(last - p + [0.0475, -0.05, 0.0], axis=-1) - 0.0725).max() < 2e-6


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--kind=curve"], "E-CLI-250"),
        (["--kind=cubic"], "E-CLI-251"),
        (["--kind=line"], "E-CLI-255"),
        (["--kind=line", "--position=1,2"], "E-CLI-255"),
        (["--kind=line", "--position=1,2,3", "--via=1,2,3"], "E-CLI-276"),
        (["--kind=arc", "--position=0.4,0,0"], "E-CLI-277"),
        (["--kind=arc", "--position=0.4,0,0", "--via=line"], "E-CLI"),
        (["--kind=path", "--position=0.4,0,0", "--via=line", "--via=line"], "E-CLI-277"),
    ],
)
def test_bad_requests(words: list[str], code: str) -> None:
    assert code in run(*words, status=2)


def test_no_kind_is_forgotten() -> None:
    assert set(KINDS) == {*SMOOTH, "trapezoid", "s-curve", "time-optimal", "line", "arc", "path"}


def test_loops_are_closed_from_independent_joints() -> None:
    """Dependent joints follow from values JOINT=X, and every sample closes the loops."""
    words = ("--from", "left=1.2", "--from", "right=1.0", "--to", "left=1.0")
    run(*words, robot="five_bar")
    robot = chasles.robots.five_bar()
    move = chasles.trajectory.load("move.csv", robot)
    q = move(np.linspace(0.0, move.duration, 20), 0)[0]
    assert np.abs(robot.loop_residual(q)).max() < 1e-6
    ends = robot.position_slice("left").start
    assert np.allclose(q[[0, -1], ends], [1.2, 1.0])
