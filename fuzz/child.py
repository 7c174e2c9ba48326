"""Child process that runs cases: `python -m fuzz.child TARGET FIRST SECONDS FOLDER`.

Before each case, its seed is written to a memory-mapped file, so that the parent process knows the
seed after a crash or a hang. Findings are written to standard output as lines of JSON.
"""

import contextlib
import json
import mmap
import os
import random
import shutil
import struct
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import IO, Any

from fuzz.target import Target, place
from fuzz.targets import TARGETS

STATE = struct.Struct("qq")
"""Seed of the running case, and number of completed cases.

The seed is -1 before the first case and -2 after the last one.
"""

MOST_FILES = 200_000
"""Size limit in bytes for a file of a case to be stored with a finding."""


def generator(target: str, seed: int) -> random.Random:
    """Return the random number generator of a case."""
    return random.Random(f"{target}:{seed}")


def kept(folder: Path) -> dict[str, str]:
    """Return the files of a case by path; Latin-1 text represents their bytes."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.stat().st_size < MOST_FILES:
            with contextlib.suppress(OSError):
                found[str(path.relative_to(folder))] = path.read_bytes().decode("latin-1")
    return found


def attempt(name: str, run: Any, seed: int) -> dict[str, Any] | None:
    """Run a case, in a new folder if the target needs one; return the finding, or None."""
    own = TARGETS[name].folder
    folder = Path(tempfile.mkdtemp(prefix="case-") if own else tempfile.gettempdir())
    before = os.getcwd()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run(generator(name, seed), folder)
    except Exception as error:
        said = traceback.format_exc(limit=-12)
        return {
            "seed": seed,
            "kind": place(error),
            "message": f"{error!s:.500}",
            "trace": said[-4000:],
            "files": kept(folder) if own else {},
        }
    finally:
        os.chdir(before)
        if own:
            shutil.rmtree(folder, ignore_errors=True)
    return None


def loop(name: str, first: int, seconds: float, state: Any, out: IO[str]) -> None:
    """Run cases with consecutive seeds, starting with `first`, for the given number of seconds."""
    target: Target = TARGETS[name]
    run, done = target.make(), 0
    end = time.monotonic() + seconds
    seed = first
    while True:
        STATE.pack_into(state, 0, seed, done)
        found = attempt(name, run, seed)
        if found is not None:
            print(json.dumps(found), file=out, flush=True)
        done, seed = done + 1, seed + 1
        if time.monotonic() > end:
            break
    STATE.pack_into(state, 0, -2, done)


def main() -> None:
    name, first, seconds, folder = sys.argv[1:]
    tempfile.tempdir = folder
    with open(Path(folder, "state"), "r+b") as file:
        state = mmap.mmap(file.fileno(), STATE.size)
    out = os.fdopen(os.dup(1), "w")
    with open(os.devnull, "w") as nothing:  # discards what cases print
        os.dup2(nothing.fileno(), 1)
    loop(name, int(first), float(seconds), state, out)


if __name__ == "__main__":
    main()
