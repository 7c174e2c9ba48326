"""Commands: printed text, written files, and error messages."""

import io
import math
import os
import re
import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from support import raises
from typer.testing import CliRunner

import chasles
from chasles.algorithms import FUNCTIONS
from chasles.backends.llvm import kernel as llvm
from chasles.cli import app, command
from chasles.robots import ROBOTS

bench, cache, cost, demo = (
    import_module(f"chasles.cli.commands.{name}") for name in ("bench", "cache", "cost", "demo")
)

ARM = """<robot name="arm">
  <link name="base"><inertial><mass value="1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="upper"><inertial><origin xyz="0.5 0 0"/><mass value="2"/>
    <inertia ixx="0.01" iyy="0.2" izz="0.2" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0.5 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="finger"><inertial><mass value="0.1"/>
    <inertia ixx="0.01" iyy="0.01" izz="{izz}" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="2" effort="50" velocity="3"/></joint>
  <joint name="elbow" type="continuous"><origin xyz="1 0 0" rpy="1.5708 0 0"/>
    <parent link="upper"/><child link="lower"/><axis xyz="0 0 1"/></joint>
  <joint name="grip" type="prismatic"><parent link="lower"/><child link="finger"/>
    <axis xyz="1 0 0"/><limit lower="0" upper="0.1" effort="5" velocity="1"/>
    <mimic joint="elbow" multiplier="0.5" offset="0.1"/></joint>
</robot>
"""


@pytest.fixture
def arm(tmp_path: Path) -> str:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.format(izz=0.01))
    return str(path)


@pytest.fixture
def odd_arm(tmp_path: Path) -> str:
    """Robot file with moments of a finger that violate the triangle inequality."""
    path = tmp_path / "odd.urdf"
    path.write_text(ARM.format(izz=0.5))
    return str(path)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "80", "NO_COLOR": "1"})
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    return result.stdout


def run_wide(*arguments: str) -> str:
    """Run a command whose output contains a path, so that its line may be long."""
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "80", "NO_COLOR": "1"})
    assert result.exit_code == 0, result.output
    assert all(len(line) <= 80 or "/" in line for line in result.stdout.splitlines())
    return result.stdout


def fail(*arguments: str) -> str:
    """Return the one line that a failing command prints on stderr."""
    code = f"from chasles.cli import main; import sys; sys.argv[1:] = {arguments!r}; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 2
    assert not result.stdout
    assert re.fullmatch(r"error: [^\n]+\n", result.stderr), result.stderr
    return result.stderr


# demo ------------------------------------------------------------------------------------------


def test_demo_shows_tables_and_writes_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = run("demo", "--output", "motion.png")
    picture = tmp_path / "motion.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 150_000
    for word in ("joint6", "peak N m", "forward_dynamics", "million states/s", "motion.png"):
        assert word in text
    assert text.count(" ok ") == 4


@pytest.fixture(scope="module")
def result() -> Any:
    return demo.run()


def test_demo_numbers_agree(result: Any) -> None:
    """Pointwise checks have rounding errors; integrals converge with order four."""
    assert all(check.passed for check in result.checks)
    assert result.checks[0].value < 1e-12
    coarse = demo.run(steps=demo.STEPS // 2, batch=8)
    for fine, other in zip(result.checks[1:], coarse.checks[1:], strict=True):
        assert 8.0 < other.value / fine.value < 32.0


def test_demo_motion_is_possible(result: Any) -> None:
    """The motion starts and ends at rest, respects all limits, and has consistent derivatives."""
    limits = [result.robot.joint(name).limits for name in result.robot.joints]
    assert np.all(result.q >= [x.lower for x in limits])
    assert np.all(result.q <= [x.upper for x in limits])
    assert np.all(np.abs(result.tau) < [x.effort for x in limits])
    for x, rate in ((result.q, result.qd), (result.qd, result.qdd)):
        assert np.allclose(np.gradient(x, result.t, axis=0)[1:-1], rate[1:-1], atol=1e-3)
    assert not np.any(result.qd[[0, -1]]) or np.max(np.abs(result.qd[[0, -1]])) < 1e-12


def test_demo_times_its_functions(result: Any) -> None:
    assert [speed.function for speed in result.speeds] == list(demo.TIMED)
    assert all(0.0 < speed.state < speed.call < speed.compile for speed in result.speeds)


def test_demo_that_fails_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(demo.Check, "passed", False)
    arguments = ["demo", "-o", str(tmp_path / "x.png")]
    assert CliRunner().invoke(app, arguments).exit_code == 1


# convert ---------------------------------------------------------------------------------------


def test_convert_writes_the_robot_and_says_what_is_left_out(
    arm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    output = "arm.xml"
    text = " ".join(run("convert", arm, output).split())
    assert "note: MJCF does not store velocity limits: 'shoulder', 'grip'" in text
    assert f"arm (2 joints, 4 links) saved to {output}" in text
    here, there = chasles.load(arm), chasles.load(output)
    assert np.allclose(there.mass_matrix([0.3, -0.7]), here.mass_matrix([0.3, -0.7]), rtol=1e-13)


def test_convert_passes_on_how_to_load(
    arm: str, odd_arm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = fail("convert", odd_arm, str(tmp_path / "odd.toml"), "--strict")
    assert "link 'finger'" in strict
    assert not (tmp_path / "odd.toml").exists()
    monkeypatch.chdir(tmp_path)
    output = "arm.toml"
    run("convert", arm, output, "--floating")
    assert chasles.load(output).nv == 8
    run("convert", arm, output, "--no-snap", "--overwrite")
    assert chasles.load(output).joint("elbow").pose.R[1, 1] != 0.0


# info ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROBOTS)
def test_info_of_every_built_in_robot(name: str) -> None:
    two = {"random_tree": ":12,3", "general_tree": ":7,2"}
    arguments = two.get(name, ":4" if "chain" in name else "")
    arguments = ":4" if name in ("planar", "zigzag") else arguments
    text = run("info", name + arguments)
    assert text.startswith(f"{name}: ")
    assert "axis" in text
    assert "mass kg" in text


def test_info_of_an_arm() -> None:
    text = run("info", "puma560")
    assert "36.45 kg, 7 links, nq 6, nv 6, gravity (0, 0, -9.81)" in text
    assert re.search(r"1 +1 +joint2 +revolute +\(0, 0, 1\) +-0.785 to 3.93 rad", text)
    assert re.search(r"link2 +joint2 +17.4 +\(0.068, 0.006, 0.2275\)", text)
    assert re.search(r"other frames: .*tool", text)
    assert "notes (2)" in text


def test_equal_notes_are_counted_once(tmp_path: Path) -> None:
    link, joint = '<link name="{0}"/>', '<joint name="{0}" type="revolute"><parent link="{1}"/>'
    joint += '<child link="{0}"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
    names = ("base", "one", "two")
    parts = [*map(link.format, names), *map(joint.format, names[1:], names)]
    path = tmp_path / "arm.urdf"
    path.write_text(f'<robot name="arm">{"".join(parts)}</robot>')
    text = run_wide("info", str(path))
    assert f"notes ({text.count('•')})" in text
    assert text.count("•") < len(chasles.load(path).notes)


def test_built_in_robots_are_noun_phrases() -> None:
    text = CliRunner().invoke(app, ["robots"], env={"COLUMNS": "160"}).stdout
    assert "Unimation PUMA 560: six revolute joints" in text
    assert "Return" not in text


def test_rounding_errors_are_displayed_as_zero(tmp_path: Path) -> None:
    """A joint whose values are below the rounding errors of other joints is at rest."""
    shown = command.without_noise([2.0, -3e-16, -0.0, np.inf, 1e-9])
    assert shown.tolist() == [2.0, 0.0, 0.0, np.inf, 1e-9]
    assert not np.signbit(shown).any()
    words = "trajectory planar:2 --from 0,1e-17 --to 1,0 -o"
    text = run_wide(*words.split(), str(tmp_path / "move.csv"))
    assert re.search(r"joint2 +0 +0 +0 +rad/s", text)


def test_info_of_a_mechanism() -> None:
    assert "loop pin: revolute, coupler to rocker" in run("info", "four_bar")


def test_info_of_a_file(arm: str) -> None:
    text = run("info", arm)
    assert "arm: 4.1 kg, 4 links, nq 2, nv 2" in text
    assert re.search(r"0 +0 +shoulder +revolute +\(0, 1, 0\) +-1 to 2 rad", text)
    assert re.search(r"0\.5·q1\+0\.1 +grip +prismatic", text)
    assert "1.5708 taken as pi/2" in " ".join(text.split())


def test_info_options(arm: str, odd_arm: str) -> None:
    assert "nq 9, nv 8" in run("info", arm, "--floating")
    assert "nq 3, nv 3" in run("info", arm, "--no-mimic")
    assert "1.5708" not in run("info", arm, "--no-snap")
    assert "triangle inequality" in " ".join(run("info", odd_arm).split())
    assert "link 'finger'" in fail("info", odd_arm, "--strict")
    assert "nq 13, nv 12" in run("info", "puma560", "--floating")
    assert "nq 6" in run("info", "puma560", "--no-mimic", "--strict", "--no-snap")


# cost ------------------------------------------------------------------------------------------


def test_cost_counts_what_the_library_counts() -> None:
    text = run("cost", "puma560")
    robot = chasles.robots.puma560()
    for method in ("newton-euler-vector", "spatial", "fastest"):
        count = chasles.cost(robot, "inverse_dynamics", method=method)
        numbers = rf"{count.multiplications} +{count.additions} +· +· +{count.sines_and_cosines}"
        assert re.search(rf"inverse_dynamics +{method} +{numbers}", text)


def test_cost_of_a_file_and_of_chosen_functions(arm: str) -> None:
    text = run("cost", arm, "--floating", "-f", "mass_matrix", "-f", "jacobian", "--frame", "upper")
    assert "frame 'upper'" in text
    assert "forward_dynamics" not in text
    assert re.search(r"mass_matrix +fastest +\d+", text)
    assert re.search(r"jacobian +spatial +\d+", text)


def test_cost_of_one_method() -> None:
    text = run("cost", "puma560", "--method", "newton-euler-vector")
    assert "inverse_dynamics" in text
    assert "fastest" not in text
    assert "jacobian" not in text


def test_cost_where_a_method_cannot_have_mimic_joints(arm: str) -> None:
    text = run("cost", arm)
    assert re.search(r"articulated-body +- +- +- +- +-", text)
    assert "does not support this robot's mimic joints" in text
    assert re.search(r"articulated-body +\d+", run("cost", arm, "--no-mimic"))
    assert "mimic" in fail("cost", arm, "-f", "forward_dynamics", "-m", "articulated-body")


def test_cost_by_the_rules_of_the_book() -> None:
    text = run("cost", "general_chain:6", "-m", "augmented-tensor", "--rules", "book")
    assert "by the book's rules" in " ".join(text.split())
    assert re.search(r"inverse_dynamics +augmented-tensor +447 +383 +· +· +·", text)


def test_cost_table_has_every_method_by_both_rules() -> None:
    text = run("cost", "planar:2", "--table")
    robot = chasles.robots.planar(2)
    for function in ("inverse_dynamics", "mass_matrix", "forward_dynamics"):
        best = chasles.cost(robot, function)
        assert re.search(
            rf"{function} +fastest +{best.multiplications} +{best.additions} +1.00", text
        )
        for method in (m for m in FUNCTIONS[function] if m.needs is None):
            plain, book = (
                chasles.cost(robot, function, method=method.name, rules=rules)
                for rules in ("simplified", "book")
            )
            numbers = (plain.multiplications, plain.additions, f"{plain.weight / best.weight:.2f}")
            cells = " +".join(map(str, (*numbers, book.multiplications, book.additions)))
            assert re.search(rf"{function} +{method.name} +{cells} *\n", text)


def test_cost_table_where_a_method_cannot_have_mimic_joints(arm: str) -> None:
    text = run("cost", arm, "--table", "-f", "forward_dynamics")
    assert re.search(r"articulated-body +- +- +- +- +-", text)


def test_cost_of_methods_for_other_robots() -> None:
    """Methods for floating bases are listed only for these, and refused for other robots."""
    asked = ("-f", "hybrid_dynamics")
    assert "floating-base" not in run("cost", "puma560", *asked)
    forward = ("-f", "forward_dynamics", "-m", "floating-base")
    assert re.search(r"floating-base +\d+", run("cost", "quadruped", *forward))
    assert "needs a floating base" in fail("cost", "puma560", *forward)


def test_cost_table_of_any_function() -> None:
    """Closed forms and sensitivities have a row for every method, however costly."""
    functions = ("closed_form", "inverse_dynamics_sensitivities")
    text = run("cost", "planar:2", "--table", "-f", functions[0], "-f", functions[1])
    for function in functions:
        for method in (*(m.name for m in FUNCTIONS[function]), "fastest"):
            assert re.search(rf"{function[:20]}\w* +{method} +\d+", text)  # a long name is wrapped


def test_cost_by_statement_fits_a_narrow_window() -> None:
    """Most statements take one line each, below their function, in the order of the book."""
    text = run("cost", "puma560", "-f", "inverse_dynamics", "-m", "augmented-tensor", "--steps")
    assert re.search(r" \d+ +wd = E @ Omega\[p\]\.wd \+ +5\.3\.45b", text)
    assert re.search(r" \d+ +eta\[p\] \+= s\.cross\(t\) \+ A @ eta\[i\] +5\.3\.46b", text)
    places = [text.index(word) for word in ("dynamics.py: chain", "5.3.45a", ": transmitted")]
    assert places == sorted(places)


def test_the_command_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "chasles", "--version"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.strip().endswith(chasles.__version__)


def test_every_function_has_a_cost() -> None:
    found = list(cost.rows(chasles.robots.planar(2), list(FUNCTIONS), "", "tip"))
    assert {function for function, _, _ in found} == set(FUNCTIONS)
    assert all(count is not None for _, _, count in found)


# cache -----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder for compiled code, which does not exist yet."""
    path = tmp_path / "kept"
    monkeypatch.setenv("CHASLES_CACHE", str(path))
    return path


def test_cache_shows_and_clears_entries(folder: Path) -> None:
    llvm.forget()  # as in a new process: nothing is loaded yet
    robot = chasles.robots.planar(2)
    robot.mass_matrix(robot.neutral())
    robot.mass_matrix(robot.neutral().astype(np.float32))
    text = run_wide("cache")
    assert f"folder: {folder}" in text
    assert re.search(r"2 entries, .* kB of at most 512 MB", text)
    assert re.search(r"mass_matrix +float64 +[\d.]+ kB +(now|\d+ seconds? ago)", text)
    assert re.search(r"mass_matrix +float32", text)
    assert re.match(r"removed 2 entries \([\d.]+ kB\) from ", run_wide("cache", "--clear"))
    assert not list(folder.iterdir())
    assert "0 entries, 0 B" in run_wide("cache")
    assert run_wide("cache", "--clear").startswith("removed 0 entries (0 B)")


def test_cache_lists_the_most_recent_entries_only(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    for k in range(cache.SHOWN + 3):
        (folder / f"{k:064d}.code").write_bytes(b"not code")
    text = run_wide("cache")
    assert f"{cache.SHOWN + 3} entries, " in text
    assert text.count("(damaged)") == cache.SHOWN
    assert "and 3 older entries" in text


def test_cache_that_is_not_there_or_not_used_says_so(folder: Path) -> None:
    assert "does not exist yet" in run_wide("cache")
    assert "does not exist yet" in run_wide("cache", "--clear")
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    (folder / "mine.code").write_bytes(b"")
    assert "accessible to other users" in run_wide("cache")
    assert "accessible to other users" in run_wide("cache", "--clear")
    assert (folder / "mine.code").exists()
    (folder / "mine.code").unlink()
    folder.rmdir()
    folder.symlink_to(folder.parent)
    assert "a link or not a folder" in run_wide("cache")
    folder.unlink()
    folder.write_text("a file")
    assert "a link or not a folder" in run_wide("cache", "--clear")


def test_cache_words() -> None:
    assert [cache.size(n) for n in (0, 1023, 2048, 5 * 2**20, 2**31)] == [
        "0 B",
        "1023 B",
        "2 kB",
        "5 MB",
        "2 GB",
    ]
    assert [cache.ago(s) for s in (-3.0, 0.5, 1.0, 59.0, 61.0, 7300.0, 90000.0)] == [
        "now",
        "now",
        "1 second ago",
        "59 seconds ago",
        "1 minute ago",
        "2 hours ago",
        "1 day ago",
    ]


# bench -----------------------------------------------------------------------------------------


def positive(measured: bench.Bench) -> None:
    for speed in measured.speeds:
        times = (speed.compile, speed.call, speed.one_core, speed.all_cores, speed.single)
        assert all(0.0 < taken < 60.0 for taken in times)


def test_bench_shows_times_and_writes_a_plot(tmp_path: Path) -> None:
    plot = tmp_path / "bench.png"
    text = run_wide("bench", "planar:2", "--batch", "3", "--output", str(plot))
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert "planar (nv 2): " in text
    assert "batch of 3:" in text
    assert "Percentage of the limit set by arithmetic (a) or memory (m):" in text
    assert text.count("derivatives") == 4
    assert "Pinocchio reads only .urdf files" in " ".join(text.split())


def test_bench_measures_and_restores_the_cache_folder(folder: Path) -> None:
    told: list[str] = []
    robot = chasles.robots.planar(1)
    measured = bench.run(robot, "planar:1", batch=2, seconds=0.0, large=2**14, step=told.append)
    positive(measured)
    assert len(told) == bench.STEPS
    assert {speed.function for speed in measured.speeds} == set(bench.FUNCTIONS)
    assert os.environ["CHASLES_CACHE"] == str(folder)
    assert not folder.exists()


@pytest.mark.parametrize("floating", [False, True])
def test_bench_beside_pinocchio(arm: str, floating: bool) -> None:
    pytest.importorskip("pinocchio")
    robot = chasles.load(arm, floating=floating, mimic=False)
    measured = bench.run(robot, arm, floating=floating, batch=5, seconds=0.0, large=2**14)
    positive(measured)
    assert not measured.note
    for speed in measured.speeds:
        assert speed.pinocchio is not None
        assert speed.error is not None
        assert 0.0 < speed.pinocchio < 60.0
        assert speed.error < 1e-3  # the file's 1.5708 is pi/2 here
    console = Console(file=io.StringIO(), width=80)
    bench.show(measured, Path("bench.png"), console)
    text = console.file.getvalue()
    assert "Speedup over Pinocchio" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_bench_says_why_pinocchio_is_absent(arm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pinocchio")
    robot = chasles.load(arm)
    assert "--no-mimic" in bench.run(robot, arm, batch=1, seconds=0.0, large=2**14).note
    monkeypatch.setitem(sys.modules, "pinocchio", None)
    assert "pip install pin" in bench.run(robot, arm, batch=1, seconds=0.0, large=2**14).note


def test_bench_of_a_robot_with_mimic_joints(
    arm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mimic joints become independent, which gives the same robot as in Pinocchio."""
    pytest.importorskip("pinocchio")
    monkeypatch.setattr(bench, "run", partial(bench.run, seconds=0.0, large=2**14))
    assert chasles.load(arm).nv < chasles.load(arm, mimic=False).nv
    words = ["--batch", "3", "--output", str(tmp_path / "bench.png")]
    text = " ".join(run_wide("bench", arm, *words).split())
    assert "Speedup over Pinocchio" in text
    assert "Mimic joints have their own coordinates, as in Pinocchio." in text
    alone = " ".join(run_wide("bench", arm, "--no-mimic", "--overwrite", *words).split())
    assert "Speedup over Pinocchio" in alone


def test_bench_of_an_installed_robot_by_name(
    arm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pinocchio")
    found = SimpleNamespace(name="my_arm", source="here", path=Path(arm))
    monkeypatch.setattr("chasles.formats.registry.installed", lambda: [found])
    monkeypatch.setattr(bench, "run", partial(bench.run, seconds=0.0, large=2**14))
    text = run_wide("bench", "my_arm", "--batch", "3", "--output", str(tmp_path / "bench.png"))
    assert "Speedup over Pinocchio" in text


def test_bench_says_how_far_from_the_limits_functions_are(tmp_path: Path) -> None:
    measured = bench.run(
        chasles.robots.planar(2), "planar:2", batch=5, seconds=0.0, large=2**16, gpu=False
    )
    rows = measured.roofline.rows
    assert {row.function for row in rows} == {function.title for function in bench.FUNCTIONS}
    assert {(row.device, row.dtype) for row in rows} == {
        ("1 core", "float64"),
        ("1 core", "float32"),
        (f"{measured.cores} cores", "float64"),
    }
    for function in bench.FUNCTIONS:
        sizes = sorted({row.states for row in rows if row.function == function.title})
        assert sizes[:2] == [1, 5]
        assert len(sizes) == 3
    for row in rows:
        assert row.bound == ("arithmetic" if row.arithmetic >= row.memory else "memory")
        assert row.fraction * row.seconds == pytest.approx(max(row.arithmetic, row.memory))
        assert row.data()["fraction"] == row.fraction
    console = Console(file=io.StringIO(), width=80)
    measured.roofline.show(console)
    text = console.file.getvalue()
    assert "Percentage of the limit set by arithmetic (a) or memory (m):" in text
    assert text.count("derivatives") == 2
    assert all(len(line) <= 80 for line in text.splitlines())


def test_bench_of_closed_loops_leaves_out_forward_dynamics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "run", partial(bench.run, seconds=0.0, large=2**14))
    words = ["four_bar", "--batch", "3", "--no-gpu", "--output", str(tmp_path / "bench.png")]
    text = run_wide("bench", *words)
    assert "Not timed for a robot with loops or couplings: forward_dynamics.\n" in text
    assert text.count("inverse_dynamics") == text.count("mass_matrix") == 2


def test_bench_of_a_batch_of_one_keeps_the_single_call() -> None:
    measured = bench.run(
        chasles.robots.planar(1), "planar:1", batch=1, seconds=0.0, large=2**14, gpu=False
    )
    console = Console(file=io.StringIO(), width=80)
    measured.roofline.show(console)
    lines = console.file.getvalue().splitlines()
    (call,) = (line.split() for line in lines if line.startswith(" mass_matrix"))
    assert call[1] == "1"
    assert len(call) == 4  # one percentage, followed by a or m
    assert sum("batch of 1" in line for line in lines) == len(bench.FUNCTIONS)


@pytest.mark.parametrize("gpu", [True, False])
def test_bench_may_leave_out_the_gpu(gpu: bool, tmp_path: Path, monkeypatch: Any) -> None:
    asked, real = list[bool](), partial(bench.run, seconds=0.0, large=2**14)

    def run(*arguments: Any, gpu: bool, **named: Any) -> bench.Bench:
        asked.append(gpu)
        return real(*arguments, gpu=False, **named)

    monkeypatch.setattr(bench, "run", run)
    words = ["--output", str(tmp_path / "bench.png"), *([] if gpu else ["--no-gpu"])]
    run_wide("bench", "planar:1", "--batch", "2", *words)
    assert asked == [gpu]


@pytest.mark.parametrize(
    ("batch", "code"), [(2**64 + 1, "E-CALL-003"), (10**12, "E-CLI-390"), (2**40, "E-CLI-390")]
)
def test_bench_refuses_batches_that_are_too_large(batch: int, code: str) -> None:
    with raises(code, "--batch"):
        bench.run(chasles.robots.planar(1), "planar:1", batch=batch)


def test_bench_refuses_another_robot(arm: str, tmp_path: Path) -> None:
    pytest.importorskip("pinocchio")
    other = tmp_path / "other.urdf"
    other.write_text(Path(arm).read_text().replace('mass value="2"', 'mass value="2.001"'))
    robot = chasles.load(arm, mimic=False, snap=False)
    with raises("E-CLI-001", "inverse_dynamics"):
        bench.run(robot, str(other), batch=2, seconds=0.0, large=2**14)


# Other commands --------------------------------------------------------------------------------


def test_version() -> None:
    assert run("--version") == f"chasles {chasles.__version__}\n"


@pytest.mark.parametrize("command", ["demo", "info", "cost", "bench", "convert", "motion", "cache"])
def test_help_has_examples(command: str) -> None:
    text = run(command, "--help")
    assert "Examples:" in text
    assert re.search(rf"chasles {command}( \w|\s)", text.split("Examples:")[1])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["info", "missing.urdf"], "E-FILE-004"),
        (["info", "pumma560"], "E-FILE-035 'puma560'"),
        (["info", "xyzzy"], "E-FILE-035"),
        (["info", "planar"], "E-CLI-042"),
        (["convert", "planar:2", "no/such.urdf"], "E-CLI-027"),
        (["convert", "planar:2", "arm.stl"], "E-FILE-003 '.stl'"),
        (["convert", "four_bar", "bar.urdf"], "E-URDF-007 'pin'"),
        (["info", "random_tree:3"], "E-CLI-042"),
        (["info", "planar:-1"], "E-CLI-042"),
        (["info", "planar:0"], "E-ROBOT-032"),
        (["info", "puma560:6"], "E-CLI-042"),
        (["info", "quadruped", "--floating"], "E-CLI-043"),
        (["info", "robot.docx"], "E-FILE-035 '.docx'"),
        (["cost", "puma560", "-f", "speed"], "E-CLI-007 'speed'"),
        (["cost", "puma560", "-m", "magic"], "E-CLI-008 'magic'"),
        (["cost", "puma560", "--table", "--steps"], "E-CLI-004 --table"),
        (["cost", "puma560", "--table", "--rules", "book"], "E-CLI-005 --table"),
        (["cost", "puma560", "--rules", "fair"], "E-CLI-006 'fair'"),
        (["cost", "puma560", "--frame", "tol"], "E-MODEL-034 'tool'"),
        (["demo", "-o", "no/such/folder/x.png"], "E-CLI-027"),
        (["bench", "planar:2", "-o", "no/such/folder/x.png"], "E-CLI-027"),
        (["bench", "pumma560"], "E-FILE-035 'puma560'"),
    ],
)
def test_mistakes_are_one_clear_line(arguments: list[str], expected: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert result.exception is None or isinstance(result.exception, SystemExit)
    code, _, name = expected.partition(" ")
    assert result.output.endswith(f" [{code}]\n")
    assert name in result.output
    assert result.output.startswith("error: ")
    assert result.output.count("\n") == 1


def test_a_bad_file_is_one_line_on_stderr(tmp_path: Path) -> None:
    bad = tmp_path / "bad.urdf"
    bad.write_text("<robot name='x'>\n  <link name='a'>\n</robot>")
    assert f"{bad}:3: invalid XML" in fail("info", str(bad))


def test_command_is_light_to_import() -> None:
    """Plots and machine code are loaded on use, so `chasles --help` starts fast."""
    heavy = ("matplotlib", "llvmlite")
    code = f"import chasles.cli, sys; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"


def test_minimum_jerk_ends_at_rest() -> None:
    t = np.linspace(0.0, 2.0, 9)
    q, qd, qdd = demo.minimum_jerk(np.zeros(1), np.ones(1), t)
    assert q[4, 0] == pytest.approx(0.5)
    assert qd[4, 0] == pytest.approx(15.0 / 8.0 / 2.0)
    assert [math.isclose(x, y) for x, y in ((q[0, 0], 0.0), (q[-1, 0], 1.0))] == [True, True]
    assert not np.any(qd[[0, -1]])
    assert not np.any(qdd[[0, -1]])
