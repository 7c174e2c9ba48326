"""Similar limbs packed into vector lanes: choice of the packed instructions, and their results."""

from dataclasses import replace

import numpy as np
import pytest

import chasles
from chasles.backends.llvm import kernel as llvm
from chasles.backends.lowering import fused
from chasles.expr import RULES, Arena, Program, Seat, Staged, Variable, interpret
from chasles.functions.programs import Derivative, program, runnable
from chasles.model.limbs import Alike

SLOPES = Derivative("jacobian", ("q", "qd", "tau"))


def staged(robot: chasles.Robot) -> Staged:
    found = runnable(robot.model, "forward_dynamics", derivative=SLOPES, staged=0)
    assert isinstance(found, Staged)
    return found


def uneven() -> chasles.Robot:
    """Return a quadruped whose legs have the same joints but different masses and lengths."""
    source = chasles.robots.quadruped().model.source
    rng = np.random.default_rng(3)
    links = tuple(
        replace(link, inertia=link.inertia * float(rng.uniform(0.5, 2.0))) for link in source.links
    )
    return chasles.Robot(replace(source, links=links))


@pytest.fixture(scope="module")
def quadruped():
    return chasles.robots.quadruped()


def test_limbs_of_a_quadruped(quadruped):
    found = quadruped.model.limbs
    assert [len(limb) for limb in found] == [3, 3, 3, 3]
    assert sorted(i for limb in found for i in limb) == list(range(1, 13))
    (kind,) = Alike.of(quadruped.model).kinds
    assert len(kind) == 4


def test_a_chain_has_no_limbs_alike():
    arm = chasles.robots.puma560()
    assert Alike.of(arm.model).kinds == ()
    assert staged(arm).head.alike == ()


def check_packs(program: Program, code) -> None:
    """Check that packed instructions have the same operation and packed or identical arguments."""
    pack = {k: each for each in program.alike for k in each}
    needed = {r for refs in program.results for r in refs}
    waiting = list(needed)
    while waiting:
        fresh = set(code[waiting.pop()].args) - needed
        needed |= fresh
        waiting += fresh
    for each in program.alike:
        if not needed.intersection(each):
            continue
        assert len({code[k].op for k in each}) == 1
        for column in zip(*(code[k].args for k in each), strict=True):
            assert len(set(column)) == 1 or pack[column[0]] == column


def test_most_instructions_of_a_quadruped_go_together(quadruped):
    head = staged(quadruped).head
    assert {len(pack) for pack in head.alike} == {4}
    assert sum(map(len, head.alike)) > 0.8 * len(head.code)
    check_packs(head, head.code)
    check_packs(head, fused(head))


def test_limbs_that_differ_in_numbers_go_together_too():
    robot = uneven()
    head = staged(robot).head
    assert sum(map(len, head.alike)) > 0.8 * len(head.code)
    assert head.inputs == staged(robot).inputs


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("fuse", [True, False])
def test_one_state_is_that_of_the_straight_program(dtype, fuse):
    """One state is bitwise the same as in a batch, and agrees with a program without limbs."""
    robot = uneven()
    made, plain = staged(robot), program(robot.model, "forward_dynamics", derivative=SLOPES)
    rng = np.random.default_rng(5)
    inputs = [robot.random(rng, size=9), *rng.normal(size=(2, 9, robot.nv))]
    given = [np.ascontiguousarray(a, dtype) for a in inputs]
    machine = llvm.Machine.host() if fuse else llvm.Machine.host().without_fma()
    kernel = llvm.compile(made, machine, dtype)
    whole = [np.full((9, v.size), np.nan, dtype) for v in made.outputs]
    kernel(given, whole)
    for k in range(9):
        alone = [np.full((1, v.size), np.nan, dtype) for v in made.outputs]
        kernel([a[k : k + 1] for a in given], alone)
        assert all(np.array_equal(a[0], b[k]) for a, b in zip(alone, whole, strict=True))
    expected = interpret(plain, dict(zip(("q", "qd", "tau"), (a[4] for a in inputs), strict=True)))
    for found, v in zip(whole, plain.outputs, strict=True):
        scale = np.abs(expected[v.name]).max()
        allowed = 1e-11 if dtype == "float64" else 2e-3
        assert np.abs(found[4] - expected[v.name]).max() <= allowed * scale


def test_derivatives_by_differences(quadruped):
    """Derivatives agree with central differences of a method that shares no code with them."""
    robot, h = quadruped, 1e-6
    rng = np.random.default_rng(2)
    q, (qd, tau) = robot.random(rng), rng.normal(size=(2, robot.nv))
    slopes = chasles.compile(robot, "forward_dynamics", wrt=("q", "qd", "tau"))
    assert isinstance(slopes.compiled, Staged)
    found = slopes(q, qd, tau)
    steps = h * np.eye(robot.nv)

    def slope(change):
        ends = (robot.forward_dynamics(*change(s), method="articulated-body") for s in (1.0, -1.0))
        return np.subtract(*ends).T / (2 * h)

    one = np.ones((robot.nv, 1))
    expected = (
        slope(lambda s: (robot.integrate(q * one, s * steps), qd * one, tau * one)),
        slope(lambda s: (q * one, qd + s * steps, tau * one)),
        slope(lambda s: (q * one, qd * one, tau + s * steps)),
    )
    for a, b in zip(found, expected, strict=True):
        assert np.abs(a - b).max() <= 1e-5 * np.abs(b).max()


def test_what_mixes_limbs_stays_single():
    arena = Arena(RULES)
    x = [arena.input("x", k, Seat(0, k, 2, 0)) for k in range(2)]
    y = arena.input("y", 0)
    both, own = x[0] + x[1], [y * a + 2.0 for a in x]
    results = [own[0] * both, own[1] * both, x[0] * own[1]]
    found = Program.from_outputs(
        "mixed", [Variable("x", (2,)), Variable("y", (1,))], [(Variable("z", (3,)), results)]
    )
    ops = sorted(found.code[pack[0]].op for pack in found.alike)
    assert ops == ["add", "input", "mul", "mul"]
    check_packs(found, found.code)
    for count in (1, 5):
        rows = [np.full((count, 3), np.nan)]
        llvm.compile(found)([np.tile([2.0, 3.0], (count, 1)), np.full((count, 1), 5.0)], rows)
        assert np.array_equal(rows[0], np.tile([60.0, 85.0, 34.0], (count, 1)))
