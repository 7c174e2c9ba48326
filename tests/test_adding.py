"""docs/adding.md adds a joint, a format, an algorithm and a backend by one table row each.

No file of the package makes decisions by the name of a joint type or a backend.
"""

import ast
import contextlib
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from test_docs import ROOT, blocks, written

import chasles
from chasles.algorithms import METHODS
from chasles.backends import BACKENDS
from chasles.formats import FORMATS
from chasles.model import JOINTS

PAGE = ROOT / "docs" / "adding.md"
SOURCE = Path(chasles.__file__).parent
TABLES = {"joints": JOINTS, "formats": FORMATS, "methods": METHODS, "backends": BACKENDS}
ADDED = {"joints": "wood_screw", "formats": "discs", "backends": "exact"}


def digest() -> str:
    """Return a hash of all sources of the package."""
    files = sorted(SOURCE.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    """Run all blocks of the page but the last, and yield the page's variables.

    The last block removes the rows again; it runs after the test.
    """
    monkeypatch.chdir(tmp_path)
    *shown, last = blocks(PAGE.read_text("utf-8"))
    assert last.kind == "python"
    space: dict[str, object] = {"__name__": "page"}
    modules = {Path(block.file).stem for block in shown if block.file}
    try:
        for block in shown:
            if block.file:
                written(block)
            elif block.kind == "python":
                with contextlib.redirect_stdout(None):
                    exec(compile(block.body, PAGE.name, "exec"), space)
        yield space
    finally:
        exec(compile(last.body, PAGE.name, "exec"), space)
        for module in modules:
            sys.modules.pop(module, None)


def test_one_row_each(request: pytest.FixtureRequest) -> None:
    before, sources = {name: dict(table) for name, table in TABLES.items()}, digest()
    request.getfixturevalue("added")
    for name, row in ADDED.items():
        assert dict(TABLES[name]) == before[name] | {row: TABLES[name][row]}, name
    grown = {name for name, rows in METHODS.items() if rows != before["methods"][name]}
    assert grown == {"kinetic_energy"}
    assert METHODS["kinetic_energy"][:-1] == before["methods"]["kinetic_energy"]
    assert digest() == sources


@pytest.mark.usefixtures("added")
def test_together(tmp_path: Path) -> None:
    """The new joint, format, algorithm and backend work together.

    Results agree with closed forms and with the default method in machine code.
    """
    numbers = [(0.1, 1.5, 0.02), (0.3, 0.5, 0.01), (-0.2, 0.7, 0.03)]
    pitch, mass, moment = np.array(numbers).T
    file = tmp_path / "three.discs"
    file.write_text("".join(f"{p} {m} {I}\n" for p, m, I in numbers))
    robot = chasles.load(file)
    assert {robot.joint(name).kind for name in robot.joints} == {"wood_screw"}
    exact = chasles.compile(robot, "kinetic_energy", method="koenig", backend="exact")
    q, qd = np.random.default_rng(5).normal(size=(2, 10, 3))
    advance, turn = np.cumsum(pitch * q * qd, axis=-1), np.cumsum(qd, axis=-1)
    paper = 0.5 * np.sum(mass * advance**2 + moment * turn**2, axis=-1)
    np.testing.assert_allclose(exact(q, qd), paper, rtol=1e-14)
    np.testing.assert_allclose(robot.kinetic_energy(q, qd), paper, rtol=1e-13)
    height = np.cumsum(0.5 * pitch * q * q, axis=-1)
    np.testing.assert_allclose(
        robot.potential_energy(q), 9.81 * np.sum(mass * height, axis=-1), rtol=1e-12, atol=1e-13
    )
    qdd = np.random.default_rng(6).normal(size=(10, 3))
    tau = robot.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(robot.forward_dynamics(q, qd, tau), qdd, rtol=1e-9, atol=1e-10)
    chasles.save(robot, tmp_path / "three.toml")  # a format with every joint type of the table
    assert chasles.verify(robot).ok


def test_rows_are_taken_out_again() -> None:
    for name, row in ADDED.items():
        assert row not in TABLES[name]


# No decision by name ---------------------------------------------------------------------------

WORDS = {
    "expr/program.py": "a cost of operations is called free",
    "backends/limits.py": "the same",
    "backends/llvm/threads.py": "the function of the C library that frees memory",
    "model/__init__.py": "a function that makes constraints of velocities",
    "homogeneous/motions.py": "SPACELIB's codes and pitches, arguments of its functions",
    "formats/mjcf_machine.py": "MuJoCo's words: springs and gears of its free and ball joints",
    "formats/mjcf_machine_writer.py": "the same",
    "formats/mjcf_sensors.py": "the same, of its sensors",
    "trajectory/lines.py": "an orientation that a path leaves free",
    "cli/commands/trajectory.py": "the same",
    "formats/registry.py": "the name of a built-in robot",
    "identification/calibration.py": "the types with a constant screw; offsets of others are kept",
    "numeric/handles.py": "the two types that its chains may have; others are refused",
}
"""Files in which the name of a joint type means something else, with the meaning."""


def constants(node: ast.AST, names: set[str]) -> set[ast.Constant]:
    """Return the string constants of a tree that are among the names."""
    found = (each for each in ast.walk(node) if isinstance(each, ast.Constant))
    return {each for each in found if isinstance(each.value, str) and each.value in names}


def decisions(path: Path, names: set[str], *, tables: bool) -> Iterator[str]:
    """Yield places where strings are compared with names.

    With `tables`, also yield all other uses of the names. Arguments of calls and default values
    are not decisions and are left out.
    """
    tree = ast.parse(path.read_text("utf-8"))
    found: set[ast.Constant] = constants(tree, names) if tables else set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found -= {*node.args, *(keyword.value for keyword in node.keywords)}
        elif isinstance(node, ast.AnnAssign):
            found.discard(node.value)
        elif isinstance(node, ast.arguments):
            found -= {*node.defaults, *node.kw_defaults}
        elif isinstance(node, ast.Compare) and not tables:
            found |= constants(node, names)
    for node in sorted(found, key=lambda node: node.lineno):
        yield f"{path.relative_to(SOURCE).as_posix()}:{node.lineno}: {node.value!r}"


def test_no_decision_by_the_name_of_a_joint_type() -> None:
    """Decisions about joints use traits (`chasles.model.joints.contract`)."""
    files = [path for path in SOURCE.rglob("*.py") if "joints" not in path.parts]
    found = [each for path in files for each in decisions(path, set(JOINTS), tables=True)]
    assert not [each for each in found if each.partition(":")[0] not in WORDS]
    assert set(WORDS) <= {each.partition(":")[0] for each in found}, "a file needs no excuse"


DEVICES = {
    "motion/compiling.py": "the name of a device, which a user gives",
    "motion/simulation.py": "the name of a device, which a user gives",
    "functions/devices.py": "the name of a device, which a report gives",
    "functions/libraries/torch.py": "PyTorch's names of devices",
}
"""Files that compare with such a word where it is not the name of a backend."""


def test_no_decision_by_the_name_of_a_backend() -> None:
    """Files in which the name of a backend means something else, with the meaning."""
    files = [path for path in SOURCE.rglob("*.py") if "backends" not in path.parts]
    found = [each for path in files for each in decisions(path, set(BACKENDS), tables=False)]
    assert not [each for each in found if each.partition(":")[0] not in DEVICES]
    assert set(DEVICES) <= {each.partition(":")[0] for each in found}, "a file needs no excuse"
