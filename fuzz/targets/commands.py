"""Command-line arguments: valid options with odd values, missing files, and arbitrary text."""

import os
import random
import re
from functools import cache
from pathlib import Path

from typer.main import get_command

from chasles.cli import app
from fuzz.target import Case
from fuzz.targets.motions import call

LEFT_OUT = ("view", "bench", "demo", "compare", "verify")
"""Commands that wait, measure or draw; their arguments are parsed by the same code."""

BEGIN = {
    "robots": [],
    "info": ["planar:2"],
    "lint": ["arm.urdf"],
    "cost": ["planar:2", "-f", "mass_matrix"],
    "explain": ["planar:2", "mass_matrix"],
    "convert": ["planar:2", "made.urdf"],
    "motion": ["planar:1", "swing.csv"],
    "simulate": ["planar:1", "--duration", "0.005", "--no-plots"],
    "export": ["planar:2", "-f", "mass_matrix", "-o", "c"],
    "cache": [],
}
"""Valid arguments of each command."""

WORDS = (
    *(
        "",
        " ",
        "-",
        "--",
        "-1",
        "0",
        "1",
        "3",
        "1e9",
        "nan",
        "inf",
        "1e-300",
        "x" * 5000,
        "\x1b[31m",
    ),
    *(
        "é",
        "a=b",
        "a,b",
        "1,2",
        "q=1",
        "joint1=0.3",
        "/",
        "/dev/null",
        "..",
        "planar:2",
        "planar:0",
    ),
    *(
        "planar:-1",
        "planar:99999",
        "puma560",
        "no.urdf",
        "arm.urdf",
        "swing.csv",
        "made.toml",
        "{}",
    ),
    *("[red]x", "%s", "--json", "--help", "--debug", "rk4", "pd", "tool", "link1"),
)


@cache
def options() -> dict[str, tuple[str, ...]]:
    """Return the options of each command."""
    found = {}
    for name, each in get_command(app).commands.items():  # type: ignore[attr-defined]
        found[name] = tuple(o for p in each.params for o in p.opts if o.startswith("-"))
    return found


def make() -> Case:
    return case


def case(rng: random.Random, folder: Path) -> None:
    """Run one command with modified arguments."""
    os.chdir(folder)
    Path("arm.urdf").write_text("<robot name='arm'><link name='base'/></robot>")
    Path("swing.csv").write_text(
        "t,joint1.q,joint1.qd,joint1.qdd\n0,0,0,0\n0.1,0.1,0,0\n0.2,0,0,0\n"
    )
    names = [name for name in options() if name not in LEFT_OUT]
    name = rng.choice(names)
    words = list(BEGIN.get(name, []))
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        turn = rng.random()
        if turn < 0.5 and options()[name]:
            words += [rng.choice(options()[name]), rng.choice(WORDS)]
        elif turn < 0.7 and words:
            words[rng.randrange(len(words))] = rng.choice(WORDS)
        elif turn < 0.8 and words:
            words.pop(rng.randrange(len(words)))
        else:
            words.insert(rng.randrange(len(words) + 1), rng.choice(WORDS))
    if not _endless(words):
        call(rng.choice((name,) * 20 + WORDS[:3]), *words)


def _endless(words: list[str]) -> bool:
    """Return True if the arguments request a long simulation or would clear the cache."""
    text = " ".join(words)
    return bool(re.search(r"planar:9|--clear|--(duration|dt)\D+(1e9|1e-300|inf|[13]\b)", text))
