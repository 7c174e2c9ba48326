"""Fixtures that run the same test body on several trees and backends."""

import pytest
from machines import PAIRS, TREES, Machine, make


@pytest.fixture(params=PAIRS, ids=" ".join, scope="session")
def machine(request: pytest.FixtureRequest) -> Machine:
    return make(*request.param)


@pytest.fixture(params=TREES, scope="session")
def compiled(request: pytest.FixtureRequest) -> Machine:
    """Each tree, compiled to machine code."""
    return make(request.param, "llvm")


@pytest.fixture(params=TREES, scope="session")
def light(request: pytest.FixtureRequest) -> Machine:
    """Each tree on NumPy, the backend that is cheapest to compile and run."""
    return make(request.param, "numpy")
