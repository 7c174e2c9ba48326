"""Quickly compiled functions give the same results before and after optimized code is ready."""

import pickle
import threading

import numpy as np
import pytest

import chasles
from chasles import backends
from chasles.errors import InputError
from chasles.functions.compiled import Compiled
from chasles.functions.tiers import Tiered


@pytest.fixture
def robot(tmp_path, monkeypatch):
    """Return a robot whose code is not in the cache."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("CHASLES_CACHE", str(tmp_path))
    rng = np.random.default_rng()
    return chasles.robots.planar(3).with_gravity((0.0, 0.0, -9.0 - rng.random()))


@pytest.fixture
def state(robot):
    rng = np.random.default_rng(2)
    return rng.normal(size=(3, 5, robot.nv))


def test_the_best_takes_over(robot, state):
    expected = chasles.compile(robot, "inverse_dynamics", backend="interpret")(*state)
    begun, go = [], threading.Event()
    real = backends.compile

    def held(program, backend=backends.USUAL, *rest):
        if backend == backends.USUAL and threading.current_thread() is not threading.main_thread():
            begun.append(backend)
            assert go.wait(60)
        return real(program, backend, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backends, "compile", held)
        made = chasles.compile(robot, "inverse_dynamics", tier="quick")
        assert isinstance(made, Tiered)
        assert made.tier == "quick"
        first = made(*state)
        go.set()
        assert made.wait(120) == "best"
    assert begun == [backends.USUAL]
    scale = np.abs(expected).max()
    for found in (first, made(*state), made(*(a[0] for a in state))[None]):
        assert np.abs(found - expected[: len(found)]).max() <= 1e-13 * scale
    assert made.recipe.backend == "llvm"
    assert isinstance(chasles.compile(robot, "inverse_dynamics", tier="quick"), Compiled)


def test_what_is_known_is_the_best_at_once(robot):
    chasles.compile(robot, "mass_matrix")
    assert isinstance(chasles.compile(robot, "mass_matrix", tier="quick"), Compiled)
    equal = chasles.robots.planar(3).with_gravity(robot.gravity)
    assert isinstance(chasles.compile(equal, "mass_matrix", tier="quick"), Compiled)


def test_code_that_cannot_be_made_leaves_the_quick_one(robot, state, monkeypatch):
    real = backends.compile

    def failing(program, backend=backends.USUAL, *rest):
        if backend == backends.USUAL:
            raise MemoryError("no room")
        return real(program, backend, *rest)

    monkeypatch.setattr(backends, "compile", failing)
    made = chasles.compile(robot, "inverse_dynamics", tier="quick")
    with pytest.raises(MemoryError, match="no room"):
        made.wait()
    assert made.tier == "quick"
    assert np.all(np.isfinite(made(*state)))


def test_pickles_as_the_best(robot, state):
    made = chasles.compile(robot, "inverse_dynamics", tier="quick")
    again = pickle.loads(pickle.dumps(made))
    assert isinstance(again, Compiled)
    assert again.recipe.backend == "llvm"
    assert np.allclose(again(*state), made(*state), rtol=1e-13)
    made.wait()


def test_derivatives_and_options(robot, state):
    made = chasles.compile(robot, "forward_dynamics", wrt="q", dissipation=True, tier="quick")
    made.wait()
    expected = chasles.compile(robot, "forward_dynamics", wrt="q", dissipation=True)(*state)
    assert np.allclose(made(*state), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "options", [{"tier": "slow"}, {"tier": "quick", "backend": "numpy"}, {"tier": None}]
)
def test_other_tiers_are_refused(robot, options):
    with pytest.raises(InputError) as caught:
        chasles.compile(robot, "inverse_dynamics", **options)
    assert caught.value.code == "E-ROBOT-040"
    with pytest.raises(InputError) as caught:
        robot.function("inverse_dynamics", **options)
    assert caught.value.code == "E-ROBOT-040"
