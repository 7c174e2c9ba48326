"""Round trips of random mechanisms through every writer, and from format to format."""

import random
from pathlib import Path

import pytest
from any_robot import FEATURES, any_robot
from trips import SUFFIXES, chain, in_process, trip

from chasles.model import JOINTS

SEEDS = range(12)
COMMON = (
    *("several", "screws", "reversed", "offsets", "on the world", "fixed links"),
    *("limits", "half limits", "resistance", "mimic", "frames", "shapes"),
)
"""Features that every format supports or omits with a note."""


@pytest.fixture(autouse=True)
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco")
    monkeypatch.setattr("chasles.formats.mjcf_source.compiled", in_process)


def test_the_robots_have_everything() -> None:
    samples = [any_robot(seed) for seed in range(40)]
    assert {joint.kind for x in samples for joint in x.source.joints} >= set(JOINTS)
    assert set().union(*(x.features for x in samples)) == set(FEATURES)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_read_back_is_the_same_or_refused(suffix: str, tmp_path: Path) -> None:
    found = {seed: trip(any_robot(seed), tmp_path / f"a{suffix}") for seed in SEEDS}
    assert {seed: x.wrong for seed, x in found.items() if x.wrong} == {}
    written = [x for x in found.values() if not x.refused]
    assert len(written) == len(SEEDS) if suffix == ".toml" else len(written) >= 2


@pytest.mark.parametrize("seed", range(4))
def test_from_format_to_format(seed: int, tmp_path: Path) -> None:
    sample = any_robot(seed, random.Random(seed).sample(COMMON, 6))
    found = chain(sample, (".urdf", ".xml", ".sdf", ".toml", ".urdf"), tmp_path)
    assert (found.wrong, found.refused) == ((), "")
