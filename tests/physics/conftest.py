"""The machines as fixtures: the same test body runs by every backend."""

import pytest
from machines import TREES, Machine, make
from support import TARGETS


@pytest.fixture(
    params=[(name, target) for target in TARGETS for name in TREES],
    ids=lambda pair: " ".join(pair),
    scope="session",
)
def machine(request: pytest.FixtureRequest) -> Machine:
    return make(*request.param)


@pytest.fixture(params=TREES, scope="session")
def compiled(request: pytest.FixtureRequest) -> Machine:
    """The same trees as machine code only."""
    return make(request.param, "llvm")
