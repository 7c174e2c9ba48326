"""MuJoCo's compiler, run in a process of its own."""

import re
from typing import Any

from chasles.errors import ModelError
from chasles.formats.walled import Tool

MUJOCO = Tool(
    "MuJoCo's compiler",
    package="mujoco",
    extra="mjcf",
    program="mjcf_child.py",
    seconds=10.0,
    memory=4 * 2**30,
)
"""Most models of gymnasium and dm_control take less than a second and 0.2 GB; dm_control's fruit
fly 4 s, and its rodent, which asks for room for many contacts, 3.2 GB."""

MAX_PARTS = 20_000
"""Bodies, joints, sites, equalities and shapes of a model; a few lines of `replicate` can make
millions."""

_LINE = re.compile(r"line(?: number)?[ =](\d+)", re.IGNORECASE)


def compiled(file: str) -> dict[str, Any]:
    """The numbers of the model that MuJoCo makes of a file: those that `mjcf_child` gives."""
    answer = MUJOCO.ask(file, str(MAX_PARTS))
    if "error" in answer:
        raise _complaint(file, answer["error"])
    return answer


def _complaint(file: str, text: str) -> ModelError:
    """What MuJoCo says, with the line where it names one, in one line."""
    line = _LINE.search(text)
    what = "; ".join(part.strip() for part in text.strip().split("\n"))
    place = file if line is None else f"{file}:{line[1]}"
    part = "MuJoCo's compiler"
    return ModelError("E-MJCF-002", what[:400], "correct the file", part=part, file=place)
