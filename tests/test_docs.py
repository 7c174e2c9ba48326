"""The documentation is current: its code runs, and its outputs and sources are those of chasles.

- A block of text directly after a block of Python must be the output of that Python.
- A block of Python after `<!-- source: FILE NAME... -->` must contain these functions and classes
  of the file, or without names the file from its first function on.
- A console block contains `$ chasles ...` and the output of that command.
- A block of text or Python after `<!-- file: NAME -->` is a file in the new folder in which the
  page runs.
- The pictures of a tutorial are drawn into that folder by its code, except the first picture,
  which `examples/tutorials.py` draws.

After a change of the library, `python tests/test_docs.py` updates sources, outputs and pictures on
the pages, and the tables of equations that sources cite (after
`<!-- equations: BOOK FOLDER... -->`).
"""

import ast
import contextlib
import importlib
import inspect
import io
import re
import runpy
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import citations
import numpy as np
import pytest
from support import gpus
from typer.testing import CliRunner

import chasles
from chasles.algorithms import FUNCTIONS
from chasles.cli import app
from chasles.functions.tracing import signature
from chasles.model import JOINTS
from chasles.robots import ROBOTS

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
IMAGES = ROOT / "docs" / "images"
EXAMPLES = {
    "accuracy.py": {"samples": 5, "joints": (3, 5), "picture": io.BytesIO()},
    "computed_torque.py": {"duration": 0.05},
    "contact_in_time.py": {"duration": 0.4, "picture": io.BytesIO()},
    "contact_laws.py": {"steps": 6, "picture": io.BytesIO()},
    "conventions.py": {},
    "crossover.py": {"joints": 4, "picture": io.BytesIO()},
    "dry_friction.py": {"picture": io.BytesIO()},
    "impact_laws.py": {"steps": 5, "picture": io.BytesIO()},
    "laws.py": {"duration": 0.3, "picture": io.BytesIO()},
    "long_runs.py": {"duration": 0.02, "picture": io.BytesIO()},
    "measured_arm.py": {"picture": io.BytesIO()},
    "mechanism_energy.py": {"duration": 0.02, "names": ["four-bar"], "picture": io.BytesIO()},
    "mechanisms.py": {"pictures": {n: io.BytesIO() for n in ("triangle", "inclined_four_bar")}},
    "microbot_jerk.py": {"states": 201},
    "million_states.py": {"states": 2000},
    "operation_counts.py": {"lengths": (2, 6), "picture": io.BytesIO()},
    "peers.py": {"libraries": ("pinocchio",), "names": ("panda",)},
    "quadruped_momentum.py": {"duration": 0.05},
    "slider_crank.py": {"steps": 24, "picture": io.BytesIO()},
    "soft_contact.py": {"h": 1e-4, "picture": io.BytesIO()},
    "soft_landing.py": {"duration": 0.05, "picture": io.BytesIO()},
    "spacelib.py": {"samples": 3},
    "tutorials.py": {"pictures": {n: io.BytesIO() for n in ("arm", "quadruped", "c-export")}},
}
NEEDS = {
    "arrays.md": ("torch", "jax"),
    "compare.md": ("mujoco",),
    "contact.md": ("daqp", "clarabel"),
    "gpu.md": ("cupy", "torch", "jax"),
    "view.md": ("viser", "trimesh"),
    "mujoco.md": ("mujoco",),
    "pinocchio.md": ("pinocchio",),
}
"""Optional packages that a page requires."""
ON_GPU = ("gpu.md",)
"""Pages that also require a GPU."""
NARROW = {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
BLOCK = re.compile(
    r"(?:<!-- (source|file): ([^>]+) -->\n)?```(python|text|console)\n(.*?)```", re.DOTALL
)
EQUATIONS = re.compile(r"(<!-- equations: (.+) -->\n)((?:\|.*\n)*)")


@dataclass(frozen=True)
class Block:
    """A block of a page, with its content and position."""

    kind: str
    body: str
    source: str | None
    file: str | None
    start: int
    end: int
    follows: bool


def blocks(text: str) -> Iterator[Block]:
    end = -1
    for found in BLOCK.finditer(text):
        role, name, kind, body = found.groups()
        adjacent = text[end : found.start()] == "\n" if end >= 0 else False
        source, file = (name if role == wanted else None for wanted in ("source", "file"))
        yield Block(kind, body, source, file, found.start(4), found.end(4), adjacent)
        end = found.end()


def name(page: Path) -> str:
    """Return the name of a test case for a page."""
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


def truth(page: Path) -> tuple[list[tuple[Block, str]], dict[str, bytes]]:
    """Return each block of a page with its expected content, and the pictures of a tutorial.

    The page runs in a new folder, into which the code of a tutorial draws the pictures.
    """
    text = page.read_text("utf-8") if page.parent.name == "tutorials" else ""
    shown = re.findall(r"\(\.\./images/(tutorial_[^)]+)\)", text)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), np.printoptions():
        return list(run(page)), {picture: Path(picture).read_bytes() for picture in shown}


def run(page: Path) -> Iterator[tuple[Block, str]]:
    """Run a page in the current folder; yield each block with its expected content."""
    space: dict[str, Any] = {"__name__": "page"}
    printed = ""
    for block in blocks(page.read_text("utf-8")):
        if block.file is not None:
            written(block)
            yield block, block.body
        elif block.kind == "python" and block.source is not None:
            yield block, body_of(*block.source.split())
        elif block.kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                exec(compile(block.body, f"{page.name}: {block.body[:40]!r}", "exec"), space)
            printed = stream.getvalue()
            yield block, block.body
        elif block.kind == "text":
            yield block, tidy(printed) if block.follows else block.body
        else:
            command = block.body.splitlines()[0]
            arguments = shlex.split(command.removeprefix("$ chasles"))
            result = CliRunner().invoke(app, arguments, env=NARROW)
            assert result.exit_code == 0, result.output
            yield block, f"{command}\n{tidy(result.output)}"


def written(block: Block) -> None:
    """Write the file of a block into the current folder, where a later block may import it."""
    Path(str(block.file)).write_text(block.body, "utf-8")
    # "." is a new folder for each page, whose modification time may equal that of the last one.
    importlib.invalidate_caches()


def tidy(text: str) -> str:
    """Remove spaces at the ends of lines and empty lines at both ends of the text."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"


def body_of(file: str, *names: str) -> str:
    """Return functions and classes of a source file, or all code from its first function on."""
    text = (ROOT / file).read_text("utf-8")
    body = ast.parse(text).body
    if not names:
        first = next(node for node in body if isinstance(node, ast.FunctionDef))
        return "\n".join(text.splitlines()[first.lineno - 1 :]) + "\n"
    known = {node.name: node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    nodes = [known[name] for name in names]
    starts = [min(n.lineno for n in (node, *node.decorator_list)) for node in nodes]
    lines = text.splitlines()
    sources = (lines[k - 1 : node.end_lineno] for k, node in zip(starts, nodes, strict=True))
    return "\n\n\n".join(map("\n".join, sources)) + "\n"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_page_is_true(page: Path) -> None:
    for package in NEEDS.get(page.name, ()):
        pytest.importorskip(package, reason=f"{page.name} needs {package}, which is not installed")
    if page.name in ON_GPU and not gpus():
        pytest.skip(f"{page.name} needs a GPU, and there is none")
    for block, expected in truth(page)[0]:
        assert block.body == expected, f"{name(page)}: run python tests/test_docs.py"


THEORY = sorted(ROOT.glob("docs/theory/*.md"))


@pytest.mark.parametrize("page", THEORY, ids=name)
def test_theory_pages_have_the_equations_that_sources_cite(page: Path) -> None:
    found = EQUATIONS.findall(page.read_text("utf-8"))
    assert found
    for _, arguments, shown in found:
        true = citations.table(*arguments.split())
        assert shown == true, f"{name(page)}: run python tests/test_docs.py"


def test_every_algorithm_is_on_a_theory_page() -> None:
    text = "".join(page.read_text("utf-8") for page in THEORY)
    files = [p.relative_to(ROOT).as_posix() for p in ROOT.glob("src/chasles/algorithms/**/*.py")]
    assert files
    no_algorithms = ("__init__.py", "/method.py")
    assert not [f for f in files if not f.endswith(no_algorithms) and f"(../../{f})" not in text]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text("utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in slugs, f"{page.name} links to {target}"


def rows(page: str) -> dict[str, list[str]]:
    """Return the cells of every table row of a page, by each of the names in its first cell."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / "docs" / page).read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        for name in re.findall(r"`(?:chasles\.)?(\w+)", cells[0] if line.startswith("|") else ""):
            found[name] = cells
    return found


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_page_has_arrays_and_results(function: str) -> None:
    cells = rows("functions.md")[function]
    sign = signature(FUNCTIONS[function][0].algorithm)
    arrays = [name for name in sign.inputs if name != "f_ext"] + ["..."] * sign.any_order
    assert cells[1].strip("`").split(", ") == arrays
    walker = chasles.robots.quadruped()
    joints = len(walker.joints)
    sizes = {"nq": walker.nq, "nv": walker.nv, "2nv": 2 * walker.nv, "joints": joints}
    sizes |= {"parameters": 10 * joints, "order": 1}
    sizes |= dict.fromkeys(("rows", "loops", "freedoms", "driven", "na"), 0)
    shapes = [
        tuple(sizes[word] if word in sizes else int(word) for word in re.findall(r"\w+", shape))
        for shape in re.findall(r"\(\.\.\.(.*?)\)", cells[3])
    ]
    assert shapes == [space.shape(walker.model) for space in sign.outputs]
    methods = [method.name for method in FUNCTIONS[function]]
    named = re.findall(r"`([\w, -]+)`", cells[2])
    listed = [name for names in named for name in names.split(", ")]
    assert listed == [*sign.options, *(methods if len(methods) > 1 else [])]


def test_functions_page_has_every_public_name() -> None:
    known = rows("functions.md")
    public = [name for name, _ in inspect.getmembers(chasles.Robot) if not name.startswith("_")]
    public += [name for name in chasles.__all__ if name != "Robot"]
    assert not [name for name in public if name not in known]
    assert not [name for name in ROBOTS if f"`{name}`" not in known["robots"][1]]


def test_every_built_in_mechanism_has_a_picture() -> None:
    page = (ROOT / "docs/mechanisms.md").read_text("utf-8")
    homes = {"chasles.robots.mechanisms"}
    closed = [name for name, make in ROBOTS.items() if make.__module__ in homes]
    assert closed
    assert not [name for name in closed if f"(images/mechanism_{name}.png)" not in page]


@pytest.mark.parametrize("kind", JOINTS)
def test_joints_page_has_coordinates_and_units(kind: str) -> None:
    _, nq, nv, _, units, _ = rows("joints.md")[kind]
    joint = JOINTS[kind]
    assert (int(nq), int(nv)) == (joint.nq, joint.nv)
    assert tuple(units.split(", ")) == joint.units


@pytest.mark.parametrize("example", sorted(path.name for path in ROOT.glob("examples/*.py")))
def test_example_runs(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / example))["main"](**EXAMPLES[example])
    assert capsys.readouterr().out


def test_readme_has_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert "\npip install . && chasles demo\n" in text
    assert "\npip install -e '.[test]' && pytest\n" in text
    assert len(text.splitlines()) <= 65, "the README is two screens; the rest belongs into docs/"
    assert (ROOT / "docs/images/demo.png").stat().st_size < 150_000


def write() -> None:
    """Update sources, outputs and pictures on all pages, or those named on the command line."""
    for page in [page for page in PAGES if not sys.argv[1:] or name(page) in sys.argv[1:]]:
        if missing := [name for name in NEEDS.get(page.name, ()) if not find_spec(name)]:
            print(f"left {page.name} as it is: {', '.join(missing)} not installed")
            continue
        if page.name in ON_GPU and not gpus():
            print(f"left {page.name} as it is: no GPU")
            continue
        text = old = page.read_text("utf-8")
        true, pictures = truth(page)
        for block, expected in reversed(true):
            text = text[: block.start] + expected + text[block.end :]
        text = EQUATIONS.sub(lambda m: m[1] + citations.table(*m[2].split()), text)
        for picture, drawn in pictures.items():
            (IMAGES / picture).write_bytes(drawn)
        if text != old:
            page.write_text(text, "utf-8")
            print(f"wrote {page.relative_to(ROOT)}")


def test_benchmarks_that_pages_name_are_there() -> None:
    """Every `python -m benchmarks NAME` on a page is a command, and its module exists."""
    from benchmarks.__main__ import COMMANDS  # only pytest has this folder on its path

    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    texts = [page.read_text("utf-8") for page in pages]
    named = {name for text in texts for name in re.findall(r"-m benchmarks ([a-z-]+)", text)}
    assert named
    assert named <= set(COMMANDS)
    for module, _ in COMMANDS.values():
        assert (ROOT / f"{module.replace('.', '/')}.py").exists()


def test_the_page_of_benchmarks_lists_every_command() -> None:
    from benchmarks.__main__ import COMMANDS

    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    rows = re.findall(r"^\| `python -m benchmarks ([a-z-]+)` ", page, re.MULTILINE)
    assert sorted(rows) == sorted(COMMANDS)
    modules = {module.removeprefix("benchmarks.") for module, _ in COMMANDS.values()}
    assert modules == {file.stem for file in (ROOT / "benchmarks").glob("command_*.py")}


if __name__ == "__main__":
    sys.path += [str(ROOT), str(ROOT / "docs")]  # the path that pytest and conftest.py set
    write()
