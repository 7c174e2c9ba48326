"""What a motion remembers between steps, so that it can be stopped and gone on with exactly."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from chasles.errors import ArgumentError, InputError
from chasles.motion.records import End

Memory = Mapping[str, np.ndarray]
"""Arrays by name; no two parts of a motion use the same name."""


def other_motion(code: str) -> InputError:
    """The error of a state to resume from that is of another motion."""
    remedy = "give the arguments that the stopped one had"
    return InputError(code, "resume is of another motion", remedy, part="simulate")


"""What is said of an end that does not belong to a motion."""


class Remembering(Protocol):
    """A part of a motion whose next step depends on more than time and state."""

    def memory(self) -> dict[str, np.ndarray]:
        """What it remembers."""

    def recall(self, memory: Memory) -> None:
        """Go on from what it remembered, among what other parts did."""


def remembered(parts: Iterable[Remembering]) -> dict[str, np.ndarray]:
    """What all parts of a motion remember."""
    return {name: array for part in parts for name, array in part.memory().items()}


def recalled(
    resume: Any,
    parts: Sequence[Remembering],
    q: np.ndarray,
    qd: np.ndarray,
    start: float,
    end: float,
) -> tuple[float, np.ndarray, np.ndarray]:
    """The time and state from which a motion goes on, once its parts have gone back there.

    q, qd, start, end: those of the motion when it began.
    """
    if not isinstance(resume, End):
        problem = f"resume must be the end of a Trajectory, not {resume!r:.60}"
        raise ArgumentError("E-MOTION-050", problem, part="simulate")
    if resume.over:
        problem = f"the motion is over at t = {resume.t:.6g} s"
        raise InputError("E-MOTION-051", problem, part="simulate: resume")
    alike = (resume.q.shape, resume.qd.shape) == (q.shape, qd.shape)
    if not alike or not start <= resume.t < end or set(resume.memory) != set(remembered(parts)):
        raise other_motion("E-MOTION-052")
    for part in parts:
        part.recall(resume.memory)
    return resume.t, resume.q.copy(), resume.qd.copy()
