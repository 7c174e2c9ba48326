"""Generated text: the golden program of a two-link arm, and reproducibility.

`python tests/golden/test_golden.py` regenerates the golden file. Review the changes.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import chasles
from chasles.backends import numpy as numpy_backend
from chasles.backends.llvm.code import Machine
from chasles.backends.llvm.kernel import source
from chasles.expr import Program
from chasles.robots import planar

GOLDEN = Path(__file__).parent / "two_link_arm.txt"


def two_link_arm() -> Program:
    """Return the inverse dynamics of two equal rods in a vertical plane."""
    return chasles.compile(planar(2), "inverse_dynamics", backend="interpret").program


def test_the_two_link_arm_reads_as_before() -> None:
    assert str(two_link_arm()) == GOLDEN.read_text()


def test_the_two_link_arm_is_as_short_as_by_hand() -> None:
    """The closed form takes about 25 multiplications and additions, two sines and two cosines."""
    count = two_link_arm().count
    assert count.flops <= 30
    assert count.sines_and_cosines <= 4
    assert count.divisions == count.square_roots == 0


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from test_golden import digests
print("\\n".join(digests()))
"""


def digests() -> list[str]:
    """Return hashes of all text that is generated for several functions of several robots."""
    machine = Machine("x86_64-unknown-linux-gnu", "generic", "", 4, True)
    texts = []
    for robot, function in (
        (planar(2), "inverse_dynamics"),
        (chasles.robots.puma560(), "forward_dynamics"),
        (chasles.robots.random_tree(7, 3, mimics=True), "mass_matrix"),
        (chasles.robots.random_tree(5, 1, floating=True), "inverse_dynamics"),
    ):
        program = chasles.compile(robot, function, backend="interpret").program
        texts += [str(program), source(program, machine).text, numpy_backend.source(program)]
        texts.append(program.hash)
    return [hashlib.sha256(text.encode()).hexdigest() for text in texts]


def test_the_same_bytes_in_every_process() -> None:
    """Generated text does not depend on addresses or on the order of sets."""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT, str(GOLDEN.parent)],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout.split()
        for seed in ("0", "12345")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) == len(set(outputs[0])) == len(digests())


def test_generated_source_says_what_it_is() -> None:
    """The header contains the function and its operation count."""
    program = two_link_arm()
    for text in (source(program).text, numpy_backend.source(program)):
        head = text[:400]
        assert program.name in head
        assert str(program.count) in head


if __name__ == "__main__":
    GOLDEN.write_text(str(two_link_arm()))
