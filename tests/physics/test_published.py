"""Values printed in Featherstone (2008), section 10.2: the zig-zag arm of six rods.

The robot has no gravity, and its neutral position is the book's.
"""

import numpy as np
import pytest
from support import TARGETS, runner

from chasles.robots import planar, zigzag

ARM = zigzag(6)
STILL, ONES = np.zeros(6), np.ones(6)


@pytest.mark.parametrize("target", TARGETS)
def test_joint_forces(target: str) -> None:
    """Torques for unit accelerations agree with the book, which truncates digits."""
    tau = runner(ARM, target)("inverse_dynamics", ARM.neutral(), STILL, ONES)
    printed = [126.4936, 97.4663, 69.9762, 43.7998, 21.9371, 6.1646]
    more = [126.49367594, 97.46632362, 69.97622844, 43.79984753, 21.93718091, 6.16468570]
    assert np.all((tau >= printed) & (tau < np.add(printed, 1e-4)))
    np.testing.assert_allclose(tau, more, rtol=0.0, atol=5e-9)


@pytest.mark.parametrize("target", TARGETS)
def test_joint_accelerations(target: str) -> None:
    """Accelerations agree for torques rounded to three digits.

    In the book, two digits of the first entry are transposed.
    """
    tau = [126.0, 97.5, 70.0, 43.8, 21.9, 6.16]
    qdd = runner(ARM, target)("forward_dynamics", ARM.neutral(), STILL, tau)
    printed = [0.6592, 1.3654, 1.3808, 0.5894, 0.9057, 1.0705]
    np.testing.assert_allclose(qdd, printed, rtol=0.0, atol=5.1e-5)
    force_error = np.max(np.abs(np.divide(tau, ARM.inverse_dynamics(STILL, STILL, ONES)) - 1.0))
    assert 80.0 < np.max(np.abs(qdd - 1.0)) / force_error < 110.0  # "more than 80" in the book


def test_condition_of_the_mass_matrix() -> None:
    """The condition number is 725 for the zig-zag, and near 4 n^4 for the straight arm."""
    assert np.linalg.cond(ARM.mass_matrix(ARM.neutral())) == pytest.approx(725.388, rel=1e-6)
    straight = {6: 5685.06, 10: 43523.4}
    for n, value in straight.items():
        M = planar(n).mass_matrix(np.zeros(n))
        assert np.linalg.cond(M) == pytest.approx(value, rel=1e-5)
        assert value == pytest.approx(4.0 * n**4, rel=0.1)
