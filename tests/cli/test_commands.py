"""Requirements for every command: help, JSON, exit statuses, and behavior in any shell.

`EXAMPLES` has a row for each command, so that these tests also cover new commands.
"""

import inspect
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import chasles
from chasles.cli import app
from chasles.cli import commands as package
from chasles.cli.app import main
from chasles.cli.command import Answer, offered, plain, said
from chasles.cli.commands import COMMANDS
from chasles.cli.options import Asked, Loading, find
from chasles.robot import Robot

bench = import_module("chasles.cli.commands.bench")

EXAMPLES = {
    "demo": ["-o", "demo.png"],
    "robots": [],
    "info": ["four_bar"],
    "view": ["planar:1", "--port", "0"],
    "lint": ["arm.urdf"],
    "verify": ["planar:1", "--states", "1"],
    "compare": ["puma560", "--with", "pinocchio"],
    "cost": ["planar:2", "-f", "mass_matrix", "--steps"],
    "explain": ["planar:2", "mass_matrix"],
    "bench": ["planar:1", "--batch", "2", "-o", "bench.svg"],
    "convert": ["planar:2", "planar.xml"],
    "reach": ["planar:2", "--pose", "0.5,0,1", "-o", "reach.csv"],
    "identify": ["planar:1", "log.csv", "-o", "found.toml", "--report", "found.html"],
    "excite": ["planar:1", "--velocity=1", "--effort=9", "--steps=5", "-o", "excited.csv"],
    "trajectory": ["planar:1", "--to", "1", "-o", "move.csv", "--plot", "move.png"],
    "motion": ["planar:1", "swing.csv", "--plot", "swing.png", "-o", "table.csv"],
    "simulate": ["planar:1", "--duration", "0.01", "--overwrite"],
    "sweep": ["planar:1", "--over", "duration=0.01,0.02", "-o", "swept", "--overwrite"],
    "export": ["planar:2", "-f", "mass_matrix", "-o", "c", "--overwrite"],
    "cache": [],
}
"""Arguments for a quick, successful run of each command."""

NEEDS = {"view": "viser", "compare": "pinocchio", "identify": "pyarrow", "sweep": "pyarrow"}
"""Commands that need an optional package."""
RUNS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            name in NEEDS and find_spec(NEEDS[name]) is None, reason=f"needs {NEEDS.get(name)}"
        ),
    )
    for name in EXAMPLES
]

ABOUT_A_ROBOT = sorted(set(EXAMPLES) - {"demo", "robots", "cache", "simulate", "sweep", "lint"})
forked = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made by fork")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working folder with a motion of one joint; benchmarks and viewers end at once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench, "run", partial(bench.run, seconds=0.0, large=2**16))
    monkeypatch.setattr(import_module("chasles.cli.commands.view"), "wait", lambda ended: None)
    (tmp_path / "arm.urdf").write_text('<robot name="arm"><link name="base"/></robot>')
    (tmp_path / "swing.csv").write_text("t,joint1.q,joint1.qd,joint1.qdd\n0,0,1,0\n1,1,1,0\n")
    rows = "".join(f"{k},{k % 3},{k % 2},{k % 5},{k % 7}\n" for k in range(20))
    (tmp_path / "log.csv").write_text("t,joint1.q,joint1.qd,joint1.qdd,joint1.tau\n" + rows)
    return tmp_path


def invoke(*words: str, columns: int = 80) -> Any:
    return CliRunner().invoke(app, list(words), env={"COLUMNS": str(columns), "NO_COLOR": "1"})


def test_every_command_is_in_the_table_and_has_an_example() -> None:
    files = {path.stem for path in Path(package.__file__).parent.glob("[!_]*.py")}
    names = [command.__name__ for command in COMMANDS]
    assert sorted(names) == sorted(files) == sorted(EXAMPLES)
    registered = [c.callback.__name__ for c in app.registered_commands if c.callback]
    assert registered == names
    page = (Path(__file__).parents[2] / "docs/command-line.md").read_text("utf-8")
    assert re.findall(r"^\| `chasles (\w+)`", page, re.MULTILINE) == names


@pytest.mark.parametrize("name", EXAMPLES)
def test_help_has_examples_and_what_every_command_takes(name: str) -> None:
    result = invoke(name, "--help")
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert re.search(rf"Examples:\s+chasles {name}\b", result.stdout)
    for option in ("--json", "--debug", "--help"):
        assert option in result.stdout
    assert "<bool>" not in result.stdout
    command = next(command for command in COMMANDS if command.__name__ == name)
    lines = inspect.cleandoc(command.__doc__ or "").splitlines()
    assert max(map(len, lines)) <= 78  # so that examples can be copied


@pytest.mark.parametrize("name", RUNS)
def test_json_is_all_that_is_printed(name: str) -> None:
    """The output is valid JSON, without NaN and infinity."""
    result = invoke(name, *EXAMPLES[name], "--json")
    assert result.exit_code == 0, result.output

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    found = json.loads(result.stdout, parse_constant=refuse)
    assert isinstance(found, dict)
    assert found
    written = found.get("files", {}) if name != "lint" else {}  # lint reads files and writes none
    for path in written.values():
        assert Path(path).stat().st_size > 0


@pytest.mark.parametrize("name", RUNS)
def test_a_narrow_window_does_no_harm(name: str) -> None:
    result = invoke(name, *EXAMPLES[name], columns=24)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip()


@pytest.mark.parametrize("name", ABOUT_A_ROBOT)
def test_a_robot_that_is_not_there_is_one_line(name: str) -> None:
    result = invoke(name, "pumma560", *EXAMPLES[name][1:])
    assert result.exit_code == 2
    assert not result.stdout
    assert re.fullmatch(r"error: pumma560: [^\n]+\n", result.stderr)


@pytest.mark.parametrize("name", ABOUT_A_ROBOT)
def test_every_robot_is_loaded_as_asked_for(name: str) -> None:
    """All commands accept --argument and check its value."""
    result = invoke(name, *EXAMPLES[name], "--argument", "left")
    assert result.exit_code == 2
    assert result.stderr == "error: --argument left: give NAME=VALUE [E-CLI-041]\n"


@pytest.mark.parametrize("words", [["--debug", "info"], ["info", "--debug"]], ids=" ".join)
def test_debug_shows_where_an_error_came_from(words: list[str]) -> None:
    result = invoke(*words, "pumma560")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert "registry.py" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: pumma560: ")


def test_a_file_is_known_by_its_suffix(here: Path) -> None:
    for name, words in (("demo", []), ("bench", ["planar:1"])):
        result = invoke(name, *words, "-o", "picture.doc")
        assert result.exit_code == 2
        assert "picture.doc: unknown plot format; use a file name ending in .png" in result.stderr
    (here / "folder.png").mkdir()
    assert "the path is a directory" in invoke("demo", "-o", "folder.png").stderr


def test_functions_are_named_alike_everywhere() -> None:
    """Functions are given with commas or by repeated options, in `cost` as in `export`."""
    both = ["-f", "mass_matrix,bias_forces"]
    again = ["--function", "mass_matrix", "--functions", "bias_forces"]
    texts = [invoke("cost", "planar:2", *words).stdout for words in (both, again)]
    assert texts[0] == texts[1]
    assert "bias_forces" in texts[0]
    result = invoke("export", "planar:2", *again, "-o", "c", "--json")
    assert json.loads(result.stdout)["functions"] == ["mass_matrix", "bias_forces"]
    assert "name a function to export" in invoke("export", "planar:2", "-o", "c").stderr


# Results ---------------------------------------------------------------------------------------


def of(command: Callable[..., Answer], *words: str) -> Any:
    """Run a command in an application of its own."""
    made = typer.Typer()
    made.command()(offered(command))
    return CliRunner().invoke(made, list(words))


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (ValueError("a.urdf:3: no\nname"), 2, "error: a.urdf:3: no name"),
        (FileNotFoundError(2, "No such file", "x"), 2, "error: x: No such file"),
        (ImportError("needs daqp"), 2, "error: needs daqp"),
        (MemoryError(), 2, "error: out of memory"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (KeyError("x"), 3, "error: internal error in chasles: KeyError: 'x'; rerun with --debug"),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, BaseException) else "",
)
def test_errors_have_statuses_and_one_line(error: BaseException, status: int, line: str) -> None:
    def bad() -> Answer:
        raise error

    result = of(bad)
    assert result.exit_code == status
    assert result.stderr.startswith(line)
    assert result.stderr.count("\n") == 1
    assert "Traceback" in of(bad, "--debug").stderr


def test_an_answer_has_a_status() -> None:
    def found() -> Answer:
        return Answer({"bad": 1}, said("bad"), 1)

    assert (of(found).exit_code, of(found).stdout) == (1, "bad\n")
    assert (of(found, "--json").exit_code, of(found, "--json").stdout) == (1, '{\n "bad": 1\n}\n')


def test_a_robot_becomes_its_options() -> None:
    seen: list[Any] = []

    def look(asked: Asked, number: int = 3) -> Answer:
        seen.append((asked, number))
        return Answer({}, said())

    words = ["arm.urdf", "--number", "4", "--floating", "--no-snap", "--argument", "a=b"]
    assert of(look, *words).exit_code == 0
    assert seen == [(Asked("arm.urdf", Loading(True, True, False, False, {"a": "b"})), 4)]
    assert list(inspect.signature(offered(look)).parameters)[:2] == ["target", "number"]


def test_plain_values() -> None:
    np = pytest.importorskip("numpy")
    given = {"a": np.array([1.0, np.nan]), "b": (np.int64(2), Path("x")), 3: float("inf")}
    assert plain(given) == {"a": [1.0, None], "b": [2, "x"], "3": None}


# Shells ----------------------------------------------------------------------------------------


def shell(
    *words: str,
    stdout: str = "pipe",
    encoding: str = "utf-8",
    env: dict[str, str | None] | None = None,
) -> tuple[int, str, str]:
    """Run a command in a forked process; return its exit status, stdout and stderr.

    stdout: "pipe" is read, "broken" has no reader, "closed" acts like >&-, else the path of a file.
    """
    out, err = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _become(out, err, stdout, encoding, env or {})
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's "&" ignores it
            sys.argv = ["chasles", *words]
            main()
        except SystemExit as ended:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
            os._exit(int(ended.code or 0))
        finally:
            os._exit(99)
    os.close(out[1])
    os.close(err[1])
    texts = []
    for end in (out[0], err[0]):
        with open(end, encoding=encoding, errors="replace") as stream:
            texts.append(stream.read())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), texts[0], texts[1]


def _become(
    out: tuple[int, int],
    err: tuple[int, int],
    stdout: str,
    encoding: str,
    env: dict[str, str | None],
) -> None:
    """Give this process the streams and the environment of a command."""
    for name, value in {"NO_COLOR": "1", "COLUMNS": "80", **env}.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    if stdout == "broken":
        pipe = os.pipe()
        os.close(pipe[0])
        os.dup2(pipe[1], 1)
    else:
        os.dup2(out[1] if stdout in ("pipe", "closed") else os.open(stdout, os.O_WRONLY), 1)
    os.dup2(err[1], 2)
    for end in (*out, *err):
        os.close(end)
    sys.stdout = open(1, "w", encoding=encoding)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding=encoding)  # noqa: SIM115
    if stdout == "closed":
        os.close(1)
        sys.stdout = None


@forked
@pytest.mark.parametrize("name", RUNS)
def test_a_poor_place_to_live(name: str, here: Path) -> None:
    """Commands work without a home folder, with a read-only cache, and on an ASCII terminal."""
    (here / "file").write_text("")
    env: dict[str, str | None] = {"HOME": None, "CHASLES_CACHE": str(here / "file/cache")}
    status, out, err = shell(name, *EXAMPLES[name], encoding="ascii", env=env)
    assert status == 0, err
    assert out.strip()
    assert "Traceback" not in err


@forked
@pytest.mark.parametrize("words", [[], ["--json"]], ids=["table", "json"])
@pytest.mark.parametrize("name", ["robots", "info", "cost", "cache"])
def test_nobody_reads_on(name: str, words: list[str]) -> None:
    """A broken pipe, as with `| head`, prints no error and gives its own exit status."""
    status, _, err = shell(name, *EXAMPLES[name], *words, stdout="broken")
    assert (status, err) == (141, "")


@forked
@pytest.mark.parametrize("name", ["robots", "info", "convert"])
def test_stdout_is_closed(name: str) -> None:
    assert shell(name, *EXAMPLES[name], stdout="closed") == (0, "", "")


@forked
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_a_disk_is_full() -> None:
    status, _, err = shell("info", "planar:2", stdout="/dev/full")
    assert status == 2
    assert re.fullmatch(r"error: [^\n]*No space left on device\n", err)


@forked
def test_tables_fold_for_terminals_only(here: Path) -> None:
    """In a pipe, a name of up to 80 characters is not wrapped, so that grep finds it."""
    name = 80 * "x"
    chasles.save(chasles.robots.planar(1), "long.toml")
    (here / "long.toml").write_text((here / "long.toml").read_text().replace("joint1", name))
    assert name in shell("info", "long.toml", env={"COLUMNS": None})[1]
    assert name not in shell("info", "long.toml", env={"COLUMNS": "60"})[1]


def test_notes_of_one_kind_are_one_line(here: Path) -> None:
    """Every link of this robot has an invalid inertia."""
    inertia = '<inertia ixx="1" iyy="1" izz="9" ixy="0" ixz="0" iyz="0"/>'
    links = "".join(
        f'<link name="{k}"><inertial><mass value="1"/>{inertia}</inertial></link>'
        f'<joint name="j{k}" type="continuous"><parent link="{k - 1}"/><child link="{k}"/></joint>'
        for k in range(1, 61)
    )
    (here / "many.urdf").write_text(f'<robot name="many"><link name="0"/>{links}</robot>')
    text = " ".join(invoke("info", "many.urdf").stdout.split())
    assert "principal moments violate the triangle inequality: link '1' (line 1, 1 + 1 < 9)" in text
    assert "and 48 more" in text
    assert text.count("triangle inequality") == 1
    assert len(json.loads(invoke("info", "many.urdf", "--json").stdout)["notes"]) >= 60


@forked
def test_notes_wrap_without_losing_the_file(here: Path) -> None:
    """A path longer than the terminal is wrapped, and the line number is kept."""
    folder = here / ("x" * 100)
    folder.mkdir()
    turn = '<origin rpy="1.5708 0 0"/>'
    joint = f'<joint name="j" type="fixed"><parent link="a"/><child link="b"/>{turn}</joint>'
    (folder / "a.urdf").write_text(
        f'<robot name="a"><link name="a"/>\n<link name="b"/>\n{joint}</robot>'
    )
    text = shell("info", f"{folder}/a.urdf", env={"COLUMNS": "60"})[1]
    assert f"{folder}/a.urdf:3:joint'j':" in "".join(text.split())


@forked
def test_colours_are_for_terminals_that_want_them() -> None:
    force: dict[str, str | None] = {"FORCE_COLOR": "1", "NO_COLOR": None, "TERM": "xterm"}
    assert "\x1b[" in shell("info", "planar:2", env=force)[1]
    assert "\x1b[" not in shell("info", "planar:2")[1]
    assert "\x1b[3" not in shell("info", "pumma560", env=force | {"NO_COLOR": "1"})[2]


@pytest.fixture
def completed(here: Path) -> Iterator[Callable[[str], list[str]]]:
    """Return a function that lists bash's completions for the last word of a line."""

    def complete(line: str) -> list[str]:
        words = line.split(" ")
        env: dict[str, str | None] = {
            "_CHASLES_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
        }
        status, out, err = shell(env=env)
        assert status == 0, err
        return out.split()

    return complete


@forked
def test_a_shell_completes_commands_robots_and_functions(
    completed: Callable[[str], list[str]],
) -> None:
    assert completed("chasles co") == ["compare", "cost", "convert"]
    assert "puma560" in completed("chasles info pu")
    assert completed("chasles cost puma560 -f inverse_dyn") == [
        "inverse_dynamics",
        "inverse_dynamics_sensitivities",
    ]


WORDS = {
    "compare puma560 --with ": "drake",
    "cost puma560 --method spatial-": "spatial-operator",
    "simulate puma560 --integrator d": "dopri5",
    "simulate puma560 --control g": "gravity",
    "view puma560 --beside pla": "planar",
    "simulate pu": "puma560",
}


@forked
@pytest.mark.parametrize("line", WORDS)
def test_a_shell_completes_what_comes_from_a_table(
    line: str, completed: Callable[[str], list[str]]
) -> None:
    assert WORDS[line] in completed(f"chasles {line}")


@forked
def test_a_shell_completes_robots_that_have_a_file(
    here: Path, completed: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "planar_arm.urdf").write_text('<robot name="arm"><link name="base"/></robot>')
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(here))
    assert completed("chasles lint planar") == ["planar_arm"]
    assert completed("chasles info planar") == ["planar", "planar_arm"]


@forked
def test_completion_that_cannot_be_installed_is_one_line(here: Path) -> None:
    (here / "file").write_text("")
    named = "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"  # the shell is given, not detected
    env: dict[str, str | None] = {"HOME": str(here / "file"), named: "1"}
    status, _, err = shell("--install-completion", "bash", env=env)
    assert status == 2
    assert re.fullmatch(r"error: [^\n]*file: File exists\n", err)


@forked
def test_ctrl_c_is_heard_wherever_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C also works in a finalizer, from which Python lets no exception escape."""

    class Closing:
        def __del__(self) -> None:
            raise KeyboardInterrupt

    def asked(self: Asked) -> Robot:
        made = Closing()
        del made
        end = time.monotonic() + 10.0
        while time.monotonic() < end:
            pass
        return find(self.target, self.how)

    monkeypatch.setattr(Asked, "robot", asked)
    assert shell("info", "planar:1") == (130, "", "interrupted\n")


def test_version_is_that_of_the_package() -> None:
    assert invoke("--version").stdout == f"chasles {chasles.__version__}\n"


@pytest.mark.parametrize(
    "words",
    [
        "identify arm.urdf table.csv -o arm.urdf",
        "identify arm.urdf table.csv --report table.csv",
        "trajectory arm.urdf --kind spline --through table.csv -o table.csv",
        "simulate arm.urdf --follow table.csv --table table.csv -o run",
        "motion arm.urdf table.csv -o table.csv",
        "motion arm.urdf table.csv --plot arm.urdf",
        "convert arm.urdf arm.urdf",
        "reach arm.urdf --poses table.csv -o table.csv",
        "excite arm.urdf -o arm.urdf",
    ],
)
def test_no_command_overwrites_what_it_reads(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path / "own")
    chasles.save(chasles.robots.planar(2), "arm.urdf")
    Path("table.csv").write_text("t,joint1.q,joint2.q\n0,0,0\n1,0.1,0.2\n")
    before = {name: Path(name).read_bytes() for name in ("arm.urdf", "table.csv")}
    done = CliRunner().invoke(app, [*words.split(), "--overwrite", "--json"])
    assert done.exit_code == 2, done.output
    assert "E-FILE-060" in done.output
    assert before == {name: Path(name).read_bytes() for name in before}
