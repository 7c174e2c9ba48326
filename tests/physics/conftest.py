"""The machines as fixtures: the same test body runs by every backend."""

import pytest
from machines import PAIRS, TREES, Machine, make


@pytest.fixture(params=PAIRS, ids=" ".join, scope="session")
def machine(request: pytest.FixtureRequest) -> Machine:
    return make(*request.param)


@pytest.fixture(params=TREES, scope="session")
def compiled(request: pytest.FixtureRequest) -> Machine:
    """The same trees as machine code only."""
    return make(request.param, "llvm")


@pytest.fixture(params=TREES, scope="session")
def light(request: pytest.FixtureRequest) -> Machine:
    """The same trees by the backend that costs least to compile and run."""
    return make(request.param, "numpy")
