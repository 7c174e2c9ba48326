"""MuJoCo's compiler behind a wall: another process, with bounds on its time and memory.

A file can make the compiler hang, take all memory or crash; the process that reads it goes on.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from chasles.model import ModelError

MAX_SECONDS = 5.0
"""For compiling one file; the models of gymnasium and dm_control take less than one."""

MAX_MEMORY = 4 * 2**30
"""Of addresses of the compiler's process, in bytes: 0.2 GB for most models, 3.2 GB where one asks
for room for many contacts (dm_control's rodent)."""

MAX_PARTS = 20_000
"""Bodies, joints, sites and equalities of a model; a few lines of `replicate` can make millions."""

_CHILD = Path(__file__).with_name("mjcf_child.py")
_LINE = re.compile(r"line(?: number)?[ =](\d+)", re.IGNORECASE)


def compiled(file: str) -> dict[str, Any]:
    """The numbers of the model that MuJoCo makes of a file: those that `mjcf_child` prints."""
    if importlib.util.find_spec("mujoco") is None:
        raise ModelError(
            f"{file}: MJCF files are read by MuJoCo's own compiler, which is not installed; "
            "pip install chasles[mjcf]"
        )
    limits = map(str, (MAX_MEMORY, MAX_PARTS))
    # -P: the folder of a program is not searched for imports; here it would hide `numbers`.
    command = [sys.executable, "-P", str(_CHILD), os.path.abspath(file), *limits]
    one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # each takes address space of its own
    with tempfile.TemporaryDirectory() as folder:  # MuJoCo logs into the one it is run in
        try:
            done = subprocess.run(
                command, capture_output=True, timeout=MAX_SECONDS, cwd=folder, env=one_thread
            )
        except subprocess.TimeoutExpired as late:
            raise ModelError(
                f"{file}: MuJoCo's compiler took more than {MAX_SECONDS:g} s; simplify the file"
            ) from late
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError as error:
        raise ModelError(
            f"{file}: MuJoCo's compiler ended without an answer ({_last_words(done)}); it may use "
            f"{MAX_MEMORY / 2**30:g} GB; simplify the file"
        ) from error
    if "error" in answer:
        raise _complaint(file, answer["error"])
    return answer


def _last_words(done: "subprocess.CompletedProcess[bytes]") -> str:
    lines = done.stderr.decode("utf-8", "replace").split("\n")
    return next((line[:200] for line in reversed(lines) if line.strip()), f"code {done.returncode}")


def _complaint(file: str, text: str) -> ModelError:
    """What MuJoCo says, with the line where it names one, in one line."""
    line = _LINE.search(text)
    what = "; ".join(part.strip() for part in text.strip().split("\n"))
    at = file if line is None else f"{file}:{line[1]}"
    return ModelError(f"{at}: MuJoCo's compiler: {what[:400]}; correct the file")
