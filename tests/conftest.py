"""Settings that all tests share. Its folder is on the import path: tests can import `support`."""

import gc
import os
import shutil
import tempfile

import pytest
from hypothesis import settings

settings.register_profile("chasles", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("chasles")

_OWN_CACHE = "CHASLES_CACHE" not in os.environ
if _OWN_CACHE:  # a new one for every run; the workers of pytest-xdist share that of their parent
    os.environ["CHASLES_CACHE"] = tempfile.mkdtemp(prefix="chasles-tests-")


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is there by now (tests, libraries) stays: the collector need not look through it."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _OWN_CACHE:
        shutil.rmtree(os.environ.pop("CHASLES_CACHE"), ignore_errors=True)
