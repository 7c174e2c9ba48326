"""No command prints control sequences or floods of text from names in files."""

import ast
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from test_commands import ABOUT_A_ROBOT, EXAMPLES, RUNS, here, invoke
from typer.testing import CliRunner

import chasles
from chasles.cli import app
from chasles.errors import InputError, shown

assert here  # fixture: the working folder for all tests of this file

HOSTILE = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202e[red]\n[/]"
LONG = "A" * 100_000

ROWS = EXAMPLES | {
    "motion": ["robot.toml", "swing.txt", "--plot", "swing.png", "-o", "table.csv"],
    "lint": ["robot.toml", "bad.toml"],
    "simulate": ["robot.toml", "--duration", "0.01", "--overwrite"],
    "cost": ["robot.toml", "-f", "mass_matrix", "-f", "jacobian", "--steps"],
}
"""Arguments for a quick run of each command, if possible with a robot with hostile names."""


def robot(name: str) -> str:
    """Return a mechanism file with `name` in every name and with one moving joint."""

    def quoted(part: str) -> str:
        return json.dumps(part + name)

    return f"""format = "mechanism"
name = {quoted("robot")}
[[link]]
name = {quoted("base")}
[[link]]
name = {quoted("arm")}
mass = 1.0
center = [0.5, 0.0, 0.0]
inertia = [0.1, 0.4, 0.4, 0.0, 0.0, 0.0]
[[joint]]
name = {quoted("joint")}
kind = "revolute"
parent = {quoted("base")}
child = {quoted("arm")}
axis = [0.0, 1.0, 0.0]
[[frame]]
name = {quoted("tip")}
link = {quoted("arm")}
position = [1.0, 0.0, 0.0]
"""


def words(name: str) -> list[str]:
    """Return the arguments of a command, with the hostile file as its robot."""
    return ["robot.toml", *ROWS[name][1:]] if name in ABOUT_A_ROBOT else ROWS[name]


def harmless(text: str) -> None:
    """Check that a text has no control characters except line ends, and no long name."""
    assert all(letter.isprintable() or letter == "\n" for letter in text), ascii(text[:2000])
    assert LONG[:81] not in text.replace("\n", "")
    assert len(text) < 50_000


@pytest.mark.parametrize("name", [run for run in RUNS if run.values != ("demo",)])
def test_no_name_controls_or_floods_a_terminal(name: str) -> None:
    text = robot(HOSTILE + LONG)
    Path("robot.toml").write_text(text, "utf-8")
    Path("bad.toml").write_text(text.replace('parent = "base', 'parent = "nothing'), "utf-8")
    Path("swing.txt").write_text("0 1 0\n1 1 0\n", "utf-8")
    result = invoke(name, *words(name))
    assert result.exit_code in (0, 1, 2), ascii(result.output[:2000])
    assert not re.search(r"^\[/\]", result.stdout, re.MULTILINE)  # a name must not begin a line
    harmless(result.stdout)
    harmless(result.stderr)
    if "robot.toml" in words(name):
        bad = [word.replace("robot.toml", "bad.toml") for word in words(name)]
        result = invoke(name, *bad, "--debug")
        assert result.exit_code in (1, 2)
        harmless(result.stdout)
        harmless(result.stderr)


def test_json_keeps_the_true_names() -> None:
    Path("robot.toml").write_text(robot(HOSTILE), "utf-8")
    result = invoke("info", "robot.toml", "--json")
    harmless(result.stdout)
    found = json.loads(result.stdout)
    assert found["name"] == f"robot{HOSTILE}"
    assert found["joints"][0]["name"] == f"joint{HOSTILE}"


def test_wrong_use_is_harmless_too() -> None:
    for words in (["--" + HOSTILE], ["info", "puma560", HOSTILE + LONG], ["info", HOSTILE + LONG]):
        result = CliRunner().invoke(app, words, env={"COLUMNS": "80", "NO_COLOR": "1"})
        assert result.exit_code == 2
        harmless(result.stdout)
        harmless(result.stderr)


def test_texts_of_python_are_harmless_and_fields_are_true() -> None:
    Path("robot.toml").write_text(robot(HOSTILE + LONG), "utf-8")
    made = chasles.load("robot.toml")
    harmless(repr(made))
    harmless(str(made.explain("mass_matrix")))
    with pytest.raises(InputError) as caught:
        made.forward_kinematics([0.0], frame=HOSTILE + LONG)
    harmless(str(caught.value))
    error = InputError("E-X-001", f"joint {LONG}", part=HOSTILE, file=f"{HOSTILE}.toml:7")
    harmless(str(error))
    assert (error.problem, error.part, error.line) == (f"joint {LONG}", HOSTILE, 7)
    assert error.fields()["file"] == f"{HOSTILE}.toml"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("joint 'elbow': axis has zero length", None),
        ("\u00e9\u4e2d\U0001f642 is printable", None),
        ("two\nlines", r"two\nlines"),
        ("/" + "folder/" * 30, None),
        ("robot's " + "many short words " * 20 + "joint's end", None),
        ("\x1b[0m\x7f\x9b\u202e\u2028\r", r"\x1b[0m\x7f\x9b\u202e\u2028\r"),
        ("x" * 81, "x" * 40 + "\u2026" + "x" * 39),
        (f"joint '{'a b' * 50}' here", f"joint '{'a b' * 13}\u2026{' ba' * 12} b' here"),
        ("/" + "f" * 2000, "/" + "f" * 39 + "\u2026" + "f" * 39),
        ("a " * 2000, "a " * 500 + "\u2026" + " a" * 499 + " "),
    ],
)
def test_what_a_terminal_shows(text: str, seen: str | None) -> None:
    assert shown(text) == (text if seen is None else seen)
    assert shown(shown(text)) == shown(text)


def test_a_name_with_markup_is_printed_as_it_is() -> None:
    Path("robot.toml").write_text(robot("[red]x[/red][link=http://x]"), "utf-8")
    result = invoke("info", "robot.toml", columns=300)
    assert re.search(r"^robot\[red\]x\[/red\]\[link=http://x\]: ", result.stdout)


def test_a_name_in_a_table_keeps_its_colour() -> None:
    """The middle of the text is omitted, but its markup is kept."""
    from chasles.cli.command import Terminal

    seen: Any = Terminal().render_str(f"[cyan]{'x' * 200}[/] and [bold]more[/]", markup=True)
    assert seen.plain == "x" * 40 + "\u2026" + "x" * 39 + " and more"
    assert {(seen.plain[s.start : s.end], str(s.style)) for s in seen.spans} >= {("more", "bold")}


def test_a_drawing_has_names_as_text() -> None:
    """Browsers would run a script in an SVG file."""
    from chasles.plots.paper import curves, finish, save, sheet

    script = f"--><script>owned()</script>{HOSTILE}"
    figure, (axes,) = sheet(1)
    curves(axes, np.arange(2.0), {script: np.arange(2.0)})
    finish(axes, script, script, script)
    save(figure, Path("drawing.svg"), ".svg")
    drawn = ElementTree.parse("drawing.svg")
    assert not [node for node in drawn.iter() if str(node.tag).endswith("script")]


def test_commands_print_by_their_terminal_alone() -> None:
    """The terminal escapes all strings; `Text` and other consoles would not."""
    folder = Path(chasles.__file__).parent / "cli"
    for path in sorted(folder.rglob("*.py")):
        calls = [
            node
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Call)
        ]
        names = {ast.unparse(call.func) for call in calls}
        known = {"command.py": {"print", "Console", "Text"}, "app.py": {"typer.echo"}}
        passing = {"print", "Console", "Text", "Text.from_markup", "typer.echo", "sys.stdout.write"}
        assert names & passing <= known.get(path.name, set()), path
