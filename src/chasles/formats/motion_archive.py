"""Motion files of `chasles simulate` (.npz): times and states of one robot."""

import os
from zipfile import BadZipFile, is_zipfile

import numpy as np

from chasles.errors import ModelError
from chasles.formats.files import size

MOTION_FORMAT = "chasles-motion-1"
"""What a motion file says of itself."""


def read(path: str | os.PathLike[str], nq: int) -> tuple[np.ndarray, np.ndarray]:
    """The times (n,) in s and the positions (n, nq) of a file, of a robot with nq coordinates."""
    file = os.fsdecode(path)
    size(file)
    try:
        with np.load(file) as arrays:
            said = str(arrays["format"])
            t, q = (np.asarray(arrays[name], dtype=float) for name in ("t", "q"))
    except (ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
        zipped = is_zipfile(file)  # of other files NumPy says how to load them without care
        fault = f"no motion can be read ({error})" if zipped else "this is no .npz file"
        remedy = "give the motion.npz of `chasles simulate`"
        raise ModelError("E-FILE-027", fault, remedy, file=file) from None
    if said != MOTION_FORMAT:
        problem = f"the format is {said!r}"
        raise ModelError("E-FILE-028", problem, f"{MOTION_FORMAT!r} can be read", file=file)
    if t.ndim != 1 or q.shape != (len(t), nq) or not len(t):
        problem = f"positions of shape {q.shape} at times of shape {t.shape}"
        remedy = f"the robot has {nq} coordinates: give a motion of this robot"
        raise ModelError("E-FILE-029", problem, remedy, file=file)
    if not (np.all(np.isfinite(t)) and np.all(np.isfinite(q)) and np.all(np.diff(t) >= 0.0)):
        problem = "times or positions are not finite, or times do not increase"
        raise ModelError("E-FILE-030", problem, file=file)
    return t, q
