"""Exported C: files, names, compiler warnings, self-test, stack, errors and the command."""

import ctypes
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_compiler import STRICT, compiler, run
from support import close, raises
from typer.testing import CliRunner

import chasles
from chasles.algorithms import CLOSED_LOOPS
from chasles.algorithms import FUNCTIONS as TABLE
from chasles.cli import app
from chasles.expr import sin
from chasles.functions.programs import spaces

FUNCTIONS = ("inverse_dynamics", "mass_matrix", "jacobian", "gravity_forces_derivatives")
EXAMPLE = Path(__file__).parents[2] / "examples/cortex_m/main.c"
ARM = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-Os")


def puma(folder: Path, *functions: str, **options: Any) -> Path:
    chasles.export(chasles.robots.puma560(), functions or FUNCTIONS, folder, **options)
    return folder


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


# Exported files --------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["gcc", "clang"])
@pytest.mark.parametrize(
    "options", [{"dtype": "double"}, {"dtype": "float", "own_sine": True}], ids=["double", "float"]
)
def test_it_compiles_without_warnings_and_passes_its_test(
    tmp_path: Path, options: dict[str, Any], by: str
) -> None:
    """Frames, floating bases, forces, loops and prescribed motions are exported too."""
    compile_ = compiler(by)
    robots = {
        "arm": (chasles.robots.puma560(), FUNCTIONS, {"frame": "tool", "at": (0.1, 0.0, 0.2)}),
        "walker": (
            chasles.robots.quadruped(),
            ("inverse_dynamics", "integrate", "difference"),
            {"f_ext": {"trunk": np.zeros(6)}, "parameters": ("trunk.mass",), "dissipation": True},
        ),
        "loops": (chasles.robots.four_bar(), ("constrained_dynamics", "loop_residual"), {}),
        "driven": (
            chasles.robots.planar(2).drive({"joint1": lambda t: [0.3 * sin(2.0 * t)]}),
            ("inverse_dynamics", "bias_forces_derivatives"),
            {},
        ),
        "still": (chasles.robots.planar(1).lock({"joint1": 0.0}), ("inverse_dynamics",), {}),
        "frame": (
            chasles.robots.planar(1).lock({"joint1": 0.3}),
            ("forward_kinematics", "gravity_forces"),
            {"frame": "tip"},
        ),
    }
    for name, (robot, functions, more) in robots.items():
        folder = tmp_path / name
        chasles.export(robot, functions, folder, prefix=name, **options, **more)
        run(compile_, *STRICT, "-O1", f"{name}.c", f"{name}_test.c", "-o", "t", "-lm", cwd=folder)
        assert "all agree" in run("./t", cwd=folder).stdout


def test_every_function(tmp_path: Path) -> None:
    """All functions and derivatives of an arm and all loop functions of a four-bar compile."""
    derived = [f"{f}_derivatives" for f in TABLE if len(spaces(f).outputs) == 1]
    arm, loop = chasles.robots.planar(2), chasles.robots.four_bar()
    chasles.export(arm, [*TABLE, *derived], tmp_path, frame="tip", prefix="arm")
    closed = [f for f in CLOSED_LOOPS if f != "actuator_forces"]
    chasles.export(loop, closed, tmp_path, prefix="bar", overwrite=True)
    for name in ("arm", "bar"):
        run(compiler(), *STRICT, f"{name}.c", f"{name}_test.c", "-o", name, "-lm", cwd=tmp_path)
        assert "all agree" in run(f"./{name}", cwd=tmp_path).stdout


def a_millionth(number: str) -> str:
    return str(float(number) * (1.0 + 1e-6))


@pytest.mark.parametrize(
    ("pattern", "change"),
    [
        (r"(?<=[ (])\d\.\d{10,}", a_millionth),
        (r"(?<=result\[2\] = )t\d+(?=;)", lambda name: "NAN"),
        (r"(?<=result\[2\]\[i\] = )t\d+(?=;)", lambda name: "NAN"),
        (r"scatter\(rows, 6U, .*;", lambda call: ""),
    ],
    ids=["a constant off by a millionth", "NaN", "NaN in a batch", "a batch that gives nothing"],
)
def test_its_test_fails_where_something_is_wrong(
    tmp_path: Path, pattern: str, change: Callable[[str], str]
) -> None:
    """The exported test detects a single change of the source."""
    puma(tmp_path, "inverse_dynamics")
    source = tmp_path / "puma560.c"
    before, name, after = source.read_text().partition("void puma560_inverse_dynamics(")
    changed, times = re.subn(pattern, lambda found: change(found[0]), after, count=1)
    assert times == 1
    source.write_text(before + name + changed)
    run(compiler(), "puma560.c", "puma560_test.c", "-o", "t", "-lm", cwd=tmp_path)
    done = subprocess.run([tmp_path / "t"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "FAILED" in done.stdout


def test_the_same_robot_has_the_same_bytes(tmp_path: Path) -> None:
    options = {"frame": "tool", "dtype": "float"}
    assert bytes_of(puma(tmp_path / "a", **options)) == bytes_of(puma(tmp_path / "b", **options))


def test_it_needs_math_alone_and_allocates_nothing(tmp_path: Path) -> None:
    puma(tmp_path, frame="tool", own_sine=True)
    run(compiler(), "-O2", "-c", "puma560.c", "-o", "x.o", cwd=tmp_path)
    wanted = run("nm", "--undefined-only", "x.o", cwd=tmp_path).stdout.split()
    assert set(wanted) - {"U", "_GLOBAL_OFFSET_TABLE_"} <= {"sin", "cos", "sincos", "sqrt", "fabs"}
    data = run("nm", "x.o", cwd=tmp_path).stdout
    assert not re.search(r" [bBdDC] ", data), "it has variables outside its functions"


@pytest.mark.parametrize("level", ["-O2", "-O3", "-Os"])
def test_stack_is_what_the_header_says(tmp_path: Path, level: str) -> None:
    """Stack usage reported by gcc, with called functions, is below that stated in the header."""
    functions = ("inverse_dynamics", "mass_matrix")
    for dtype in ("double", "float"):
        folder = puma(tmp_path / dtype, *functions, dtype=dtype, own_sine=True)
        run(compiler(), level, "-fstack-usage", "-c", "puma560.c", "-o", "x.o", cwd=folder)
        used = dict(re.findall(r":(\w+)[.\w]*\t(\d+)", (folder / "x.su").read_text()))
        header = (folder / "puma560.h").read_text()
        for name in functions:
            told = header[: header.index(f"void puma560_{name}(")].rpartition("/*")[2]
            one, many = map(int, re.findall(r"(\d+) bytes", told))
            own, batch = (int(used[f"puma560_{name}{end}"]) for end in ("", "_batch"))
            assert own <= one <= 6 * own + 1024
            assert batch + int(used.get(f"puma560_{name}_tile0", 0)) <= many
        assert str(chasles.cost(chasles.robots.puma560(), "mass_matrix").additions) in header


def test_names(tmp_path: Path) -> None:
    """Names are valid if the robot's name is not a C identifier, and for a given prefix."""
    source = chasles.robots.planar(1).model.source
    odd = chasles.Robot(type(source)(**{**vars(source), "name": "2*/ armé\\ ??/"}))
    chasles.export(odd, "mass_matrix", tmp_path / "a")
    assert sorted(bytes_of(tmp_path / "a")) == [
        "CMakeLists.txt",
        "x2_arm.c",
        "x2_arm.h",
        "x2_arm_test.c",
    ]
    run(compiler(), *STRICT, "x2_arm.c", "x2_arm_test.c", "-o", "t", "-lm", cwd=tmp_path / "a")
    chasles.export(odd, "mass_matrix", tmp_path / "b", prefix="Left_arm")
    assert "void Left_arm_mass_matrix(" in (tmp_path / "b" / "Left_arm.h").read_text()
    with raises("E-EXPORT-006", "'left_arm'"):
        chasles.export(odd, "mass_matrix", tmp_path / "c", prefix="left-arm")


def test_cmake_builds_and_tests_it(tmp_path: Path) -> None:
    cmake = compiler("cmake")
    compiler()
    puma(tmp_path / "puma", "mass_matrix")
    run(cmake, "-S", "puma", "-B", "build", cwd=tmp_path)
    run(cmake, "--build", "build", cwd=tmp_path)
    assert "100% tests passed" in run("ctest", "--test-dir", "build", cwd=tmp_path).stdout


def test_a_header_for_c_plus_plus(tmp_path: Path) -> None:
    puma(tmp_path, "mass_matrix")
    (tmp_path / "main.cpp").write_text(
        '#include "puma560.h"\nint main() { double q[6] = {}, M[36];'
        " puma560_mass_matrix(q, M); return M[0] > 0.0 ? 0 : 1; }\n"
    )
    run(compiler(), "-c", "puma560.c", cwd=tmp_path)
    run(compiler("g++"), "-Wall", "-Werror", "main.cpp", "puma560.o", "-o", "t", cwd=tmp_path)
    run("./t", cwd=tmp_path)


def test_cortex_m(tmp_path: Path) -> None:
    """The example for a Cortex-M4F compiles without warnings or double arithmetic and is small."""
    compile_ = compiler("arm-none-eabi-gcc")
    puma(tmp_path, "inverse_dynamics", dtype="float", own_sine=True)
    shutil.copy(EXAMPLE, tmp_path)
    flags = (*STRICT, "-Wdouble-promotion", *ARM, "-ffunction-sections", "-ffp-contract=fast")
    for name in ("puma560", "main"):
        run(compile_, *flags, "-c", f"{name}.c", "-o", f"{name}.o", cwd=tmp_path)
    assert "__aeabi_d" not in run("arm-none-eabi-nm", "-u", "puma560.o", cwd=tmp_path).stdout
    sizes = run("arm-none-eabi-size", "-A", "puma560.o", cwd=tmp_path).stdout
    found = {name: int(size) for name, size in re.findall(r"\.text\.(\w+)\s+(\d+)", sizes)}
    assert found["puma560_inverse_dynamics"] < 2500
    bare = ("-nostartfiles", "-Wl,-e,main", "-Wl,--gc-sections")
    run(compile_, *ARM, *bare, "puma560.o", "main.o", "-lm", "-lc", "-o", "x.elf", cwd=tmp_path)
    whole = run("arm-none-eabi-size", "x.elf", cwd=tmp_path).stdout.splitlines()[1].split()
    assert int(whole[0]) < 8192


def test_the_example_in_plain_c(tmp_path: Path) -> None:
    """Torques of the example equal those of computed-torque control in Python."""
    puma(tmp_path, "inverse_dynamics", dtype="float", own_sine=True)
    text = EXAMPLE.read_text().replace("int main(void)", "int forever(void);\nint forever(void)")
    (tmp_path / "main.c").write_text(text)
    files = ("main.c", "puma560.c", "-o", "x.so", "-lm")
    run(compiler(), *STRICT, "-O2", "-shared", "-fPIC", *files, cwd=tmp_path)
    library = ctypes.CDLL(str(tmp_path / "x.so"))

    def array(name: str) -> np.ndarray:
        return np.ctypeslib.as_array((ctypes.c_float * 6).in_dll(library, name))

    names = ("measured_q", "measured_qd", "planned_q", "planned_qd", "planned_qdd")
    q, qd, to_q, to_qd, to_qdd = (
        x.astype(float) for x in np.random.default_rng(0).normal(size=(5, 6))
    )
    for name, value in zip(names, (q, qd, to_q, to_qd, to_qdd), strict=True):
        array(name)[:] = value
    library.control_step()
    wanted = to_qdd + 20.0 * (to_qd - qd) + 100.0 * (to_q - q)
    close(array("motor_torque"), chasles.robots.puma560().inverse_dynamics(q, qd, wanted), 1e-5)


# Errors ----------------------------------------------------------------------------------------


def test_bad_requests_are_refused_at_the_door(tmp_path: Path) -> None:
    arm, loop = chasles.robots.puma560(), chasles.robots.four_bar()
    for robot, functions, options, error, words in (
        (arm, "inverse_dynamic", {}, ValueError, "E-EXPORT-004 'inverse_dynamics'"),
        (arm, "assemble", {}, ValueError, "E-EXPORT-003"),
        (arm, [], {}, ValueError, "E-EXPORT-001"),
        (arm, "jacobian", {"frame": 3}, TypeError, "E-MODEL-033"),
        (arm, "mass_matrix", {"frame": "tool"}, ValueError, "E-EXPORT-005 mass_matrix"),
        (arm, "jacobian", {"frame": "nowhere"}, ValueError, "E-MODEL-034 'nowhere'"),
        (arm, "mass_matrix", {"f_ext": {"tool": np.zeros(6)}}, ValueError, "E-EXPORT-005 f_ext"),
        (arm, "mass_matrix", {"dtype": "half"}, ValueError, "E-EXPORT-002 'double'"),
        (arm, "mass_matrix", {"parameters": ["hand.mass"]}, ValueError, "E-MODEL-038 'hand.mass'"),
        (loop, "forward_dynamics", {}, ValueError, "E-ROBOT-015 constrained_dynamics"),
    ):
        with raises(words, kind=error):
            chasles.export(robot, functions, tmp_path / "x", **options)
    assert not (tmp_path / "x").exists()


def test_files_that_are_there_stay(tmp_path: Path) -> None:
    puma(tmp_path, "mass_matrix")
    before = bytes_of(tmp_path)
    with raises("E-EXPORT-007"):
        puma(tmp_path, "inverse_dynamics")
    assert bytes_of(tmp_path) == before
    puma(tmp_path, "inverse_dynamics", overwrite=True)
    assert bytes_of(tmp_path).keys() == before.keys()
    assert bytes_of(tmp_path) != before


@pytest.mark.parametrize("made", [True, False])
def test_a_full_disk_leaves_nothing(
    tmp_path: Path, made: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the third file does not fit, no files are left, nor a folder that did not exist."""
    folder = tmp_path / "puma"
    if made:
        folder.mkdir()
    write, written = Path.write_text, []

    def full(path: Path, *arguments: Any, **options: Any) -> int:
        written.append(path)
        if len(written) == 3:
            path.touch()
            raise OSError(28, "No space left on device")
        return write(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", full)
    with raises("E-EXPORT-009"):
        puma(folder, "mass_matrix")
    assert folder.exists() == made
    assert not made or not list(folder.iterdir())


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    with raises("E-EXPORT-008"):
        puma(file, "mass_matrix")
    with raises("E-EXPORT-009"):
        puma(tmp_path / "no" / "such", "mass_matrix")
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.geteuid() != 0:
        with pytest.raises(
            OSError, match="Permission denied; choose another path; nothing was written"
        ):
            puma(closed, "mass_matrix")
    assert file.read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["closed", "file"]


# The command -----------------------------------------------------------------------------------


def command(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["export", *arguments], env={"COLUMNS": "80", "NO_COLOR": "1"})


def test_command(tmp_path: Path) -> None:
    """The command writes the same files as the function; the default frame is the last one."""
    out = str(tmp_path / "puma")
    done = command("puma560", "--functions", ",".join(FUNCTIONS), "--dtype", "float", "-o", out)
    assert done.exit_code == 0, done.output
    assert "puma560.h, puma560.c, puma560_test.c, CMakeLists.txt" in done.output
    frame = chasles.robots.puma560().frames[-1]
    assert bytes_of(tmp_path / "puma") == bytes_of(puma(tmp_path / "b", dtype="float", frame=frame))
    again = command("puma560", "-f", "jacobian", "--at", "0,0,0.1", "--axes", "frame", "-o", out)
    assert again.exit_code == 2
    assert "already exists" in again.output
    more = ("--at", "0,0,0.1", "--axes", "frame", "--overwrite", "--own-sine", "--prefix", "arm")
    assert command("puma560", "-f", "jacobian", *more, "-o", out).exit_code == 0
    options = {"at": (0, 0, 0.1), "axes": "frame", "own_sine": True, "prefix": "arm"}
    expected = bytes_of(puma(tmp_path / "c", "jacobian", frame=frame, **options))
    assert (tmp_path / "puma" / "arm.c").read_bytes() == expected["arm.c"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-f", "nothing"), "unknown function 'nothing'"),
        (
            ("-f", "jacobian", "--at", "here"),
            "--at here: invalid point; use frame, world, or x,y,z",
        ),
        (("-f", "jacobian", "--frame", "nowhere"), "there is no frame 'nowhere'"),
        (("-f", "mass_matrix", "--axes", "world"), "E-EXPORT-005"),
    ],
)
def test_command_errors(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = command("puma560", *arguments, "-o", str(tmp_path / "x"))
    assert done.exit_code == 2
    assert words in " ".join(done.output.split())
    assert not (tmp_path / "x").exists()
