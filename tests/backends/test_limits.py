"""Limits of a machine, and the work of a program. No speed is asserted."""

import math

import pytest

import chasles
from chasles.backends import limits
from chasles.backends.limits import Limits, Work
from chasles.robots import planar, puma560

SLOW = limits.SLOW


def test_the_work_of_a_pendulum() -> None:
    """The torque m l^2/3 qdd + m g l/2 cos(q) takes a product, a fused product and a cosine."""
    program = chasles.compile(planar(1), "inverse_dynamics").program
    assert Work.of(program) == Work(2 + SLOW, 3, 1)


def test_the_work_of_an_arm() -> None:
    """Fused products count as one operation, so the work is never overestimated."""
    program = chasles.compile(puma560(), "forward_dynamics").program
    work, count = Work.of(program), program.count
    slow = SLOW * (count.divisions + count.sines_and_cosines)
    assert (work.read, work.written) == (18, 6)
    assert max(count.multiplications, count.additions) <= work.operations - slow < count.flops


def test_limits() -> None:
    """Times agree with a calculation by hand for 10 states of 4 inputs and 6 outputs of 8 bytes."""
    known = Limits("", {"float64": 100.0}, ((1, 10.0), (100, 1000.0)), ((1, 5.0), (100, 5.0)))
    work = Work(30, 4, 6)
    assert known.arithmetic(work, "float64", 10) == 3.0
    assert known.memory(work, "float64", 10) == pytest.approx(640 / 1000.0 + 160 / 5.0)
    assert known.memory(Work(1, 6, 4), "float64", 10) == pytest.approx(800 / 1000.0)
    rates = [limits.rate(known.copies, size) for size in (0, 1, 10, 100, 1000)]
    assert rates == pytest.approx([10.0, 10.0, 100.0, 1000.0, 1000.0])


@pytest.mark.parametrize("cores", [1, 2])
def test_this_processor(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FOOTPRINTS", (2**14, 2**16))
    monkeypatch.setattr(limits, "SECONDS", 1e-5)
    found = limits.processor.__wrapped__(cores)
    assert found.name.endswith("1 core" if cores == 1 else "2 cores")
    assert set(found.operations) == {"float64", "float32"}
    numbers = [*found.operations.values(), *(r for _, r in (*found.copies, *found.fills))]
    assert all(math.isfinite(x) and x > 0.0 for x in numbers)
    limits.processor.cache_clear()


@pytest.mark.parametrize("fuse", [True, False])
def test_products_are_not_left_out(fuse: bool) -> None:
    """The compiled benchmark loop contains all products, with or without fused multiply-add."""
    text = limits._peak("float64", "double", "f64", 2, fuse=fuse)
    assert text.count("@llvm.fma" if fuse else "fmul") == limits.CHAINS + fuse
