"""Damaged and malicious files are loaded or refused, in bounded time and memory."""

import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mutations import SECONDS, attempt, cases, put
from support import raises

import chasles
from chasles.formats.files import MAX_LINKS, suffixes


def test_mutated_files_load_or_are_refused(tmp_path: Path) -> None:
    """Mutated files cause no other errors and no long run times; many load, many are refused."""
    put(tmp_path)
    loaded = 0
    for seed, name, data in cases(400):
        path = tmp_path / name
        path.write_bytes(data)
        start = time.process_time()
        try:
            loaded += attempt(path)
        except Exception as error:
            pytest.fail(f"seed {seed}, {name}: {error!r}")
        assert time.process_time() - start < SECONDS, f"seed {seed}, {name}"
    assert 40 < loaded < 360


def test_mutated_xacro_files_are_refused_with_their_line(tmp_path: Path) -> None:
    """Mistakes in expressions, macros, blocks, includes and XML are reported with their line."""
    put(tmp_path)
    told = []
    for _, name, data in cases(150, kind=".xacro"):
        path = tmp_path / name
        path.write_bytes(data)
        try:
            attempt(path, told.append)
        except Exception as error:
            pytest.fail(f"{name}: {error!r}")
    assert len(told) > 75
    assert [text for text in told if not re.match(r"[^ ]+\.xacro:\d+: ", text)] == []


LINKS = 10**6
HEAVY = "x" * 1000
HOSTILE = {
    "flat.urdf": ("<robot name='r'>", "<link name='a'/>" * LINKS, "</robot>"),
    "nested.urdf": ("<robot name='r'>", "<link name='a'>" * LINKS, ""),
    "flat.sdf": ("<sdf version='1.9'><model name='m'>", "<link name='a'/>" * LINKS, ""),
    "nested.sdf": ("<sdf version='1.9'>", "<model name='m'>" * LINKS, ""),
    "flat.xml": ("<mujoco><worldbody>", "<body/>" * LINKS, "</worldbody></mujoco>"),
    "nested.xml": ("<mujoco><worldbody>", "<body>" * LINKS, ""),
    "attribute.urdf": ("<robot name='", "x" * 20_000_000, "'/>"),
    "attributes.urdf": ("<robot ", "".join(f"a{i}='' " for i in range(10**6)), "/>"),
    "text.sdf": ("<sdf version='1.9'>", "x" * 20_000_000, "</sdf>"),
    "number.urdf": (
        "<robot name='r'><link name='a'><inertial><mass value='",
        "9" * 7_000_000,
        "'/>",
    ),
    "bomb.sdf": (
        "<!DOCTYPE s [<!ENTITY a0 'xxxxxxxxxx'>",
        "".join(f"<!ENTITY a{k} '{f'&a{k - 1};' * 10}'>" for k in range(1, 12)),
        "]><sdf version='1.9'>&a11;</sdf>",
    ),
    "external.sdf": ("<!DOCTYPE s [<!ENTITY a SYSTEM '/etc/passwd'>]>", "<sdf>&a;</sdf>", ""),
    "flat.xacro": ("<robot name='r'>", "<link name='a'/>" * 400_000, "</robot>"),
    "flat.toml": ('format = "mechanism"\n', "[[link]]\nname = 'a'\n" * 200_000, ""),
    "nested.toml": ('format = "mechanism"\na = ', "[" * 10**6, ""),
}

LOADER = """
import resource, sys, time
import chasles
import chasles.formats.urdf, chasles.formats.sdf, chasles.formats.mjcf, chasles.formats.mechanism
size = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    before, start = size(), time.process_time()
    try:
        chasles.load(path)
    except chasles.ModelError as error:
        assert len(str(error)) < 2000, path
        print(f"{time.process_time() - start:.2f} {(size() - before) // 1024} {error}")
"""


def test_hostile_files_are_refused(tmp_path: Path) -> None:
    """Each file is refused within 1 s of processor time and 200 MB, in a new process."""
    paths = [tmp_path / name for name in HOSTILE]
    for path in paths:
        with path.open("w") as stream:
            stream.writelines(HOSTILE[path.name])
    done = subprocess.run(
        [sys.executable, "-c", LOADER, *paths], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-500:]
    refused = done.stdout.splitlines()
    assert len(refused) == len(paths), "one of them was loaded"
    for path, line in zip(paths, refused, strict=True):
        seconds, megabytes, message = line.split(maxsplit=2)
        assert message.startswith(str(path))
        assert float(seconds) < 1.0, line
        assert int(megabytes) < 200, line


@pytest.mark.parametrize("suffix", sorted(set(suffixes()) - {".mjcf"}))
def test_a_huge_file_is_refused_unread(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"huge{suffix}"
    with path.open("wb") as stream:
        stream.truncate(2 * 2**30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with raises("E-FILE-007", "2048"):
        chasles.load(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


def test_robots_with_too_many_links(tmp_path: Path) -> None:
    links = "".join(f"<link name='l{i}'/>" for i in range(MAX_LINKS + 1))
    path = tmp_path / "many.urdf"
    path.write_text(f"<robot name='r'>{links}</robot>")
    with raises("E-FILE-002", f"{MAX_LINKS + 1}"):
        chasles.load(path)
