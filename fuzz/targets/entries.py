"""Damaged cache entries: an entry that differs from what was written must be rejected."""

import hashlib
import json
import os
import random
from functools import cache as once
from pathlib import Path

import chasles
from chasles.backends import cache
from chasles.backends.cache import Artifact
from chasles.backends.llvm import kernel
from fuzz.target import Case

NAMES = ("a" * 64, "b" * 64)
FUNCTIONS = ("mass_matrix", "inverse_dynamics")


@once
def contents() -> tuple[bytes, bytes]:
    """Return two valid entries."""
    robot = chasles.robots.planar(2)
    programs = (chasles.compile(robot, name).program for name in FUNCTIONS)
    first, second = (kernel.build(program).to_bytes() for program in programs)
    return first, second


def damaged(rng: random.Random, whole: bytes, other: bytes) -> bytes:
    """Return an entry with random damage, and therefore a wrong checksum.

    The damage may leave the entry unchanged.
    """
    data, turn = bytearray(whole), rng.randrange(7)
    if turn == 0:
        for _ in range(rng.choice((1, 1, 2, 50))):
            k = rng.randrange(len(data))
            data[k] ^= 1 << rng.randrange(8)
    elif turn == 1:
        del data[rng.randrange(len(data)) :]
    elif turn == 2:
        k = rng.randrange(len(data))
        data[k:k] = rng.randbytes(rng.choice((1, 8, 4096)))
    elif turn == 3:
        i, n = rng.randrange(len(data)), rng.choice((1, 64, 4096))
        data[i : i + n] = bytes(n)
    elif turn == 4:
        k = rng.randrange(len(data))
        data[k:] = other[k:]
    elif turn == 5:
        data = bytearray(rng.randbytes(rng.choice((0, 1, 100, 5000))))
    return bytes(data)


def signed(rng: random.Random, whole: bytes) -> bytes:
    """Return an entry with a modified header and a valid checksum, unlike any random damage."""
    start = len(cache._MAGIC) + 32
    body = whole[start:]
    size = int.from_bytes(body[:8], "little")
    header = json.loads(body[8 : 8 + size])
    odd = (-1, 2**64, 1.5, None, "x", [], {}, True, [[-1, 2]], [["q", [2**70]]])
    where = rng.choice((header, header["interface"]))
    name = rng.choice(list(where))
    if rng.random() < 0.2:
        del where[name]
    else:
        where[name] = rng.choice(odd)
    text = json.dumps(header).encode()
    length = rng.choice((len(text), len(text), 0, 2**63, 3)).to_bytes(8, "little")
    body = length + text + body[8 + size :]
    return cache._MAGIC + hashlib.sha256(body).digest() + body


def make() -> Case:
    whole, other = contents()
    good = Artifact.from_bytes(whole)

    def case(rng: random.Random, folder: Path) -> None:
        place = folder / "cache"
        place.mkdir(mode=0o700)
        before = os.environ.get("CHASLES_CACHE")
        os.environ["CHASLES_CACHE"] = str(place)
        try:
            path = place / (NAMES[0] + cache._SUFFIX)
            turn = rng.random()
            if turn < 0.2:
                data = signed(rng, whole)
                path.write_bytes(data)
            elif turn < 0.9:
                data = damaged(rng, whole, other)
                path.write_bytes(data)
            else:
                data = b""
                _strange(rng, path, whole)
            if path.is_file():
                path.chmod(rng.choice((0o600, 0o600, 0o600, 0o644, 0o000)))
            found = cache.load(NAMES[0])
            if turn >= 0.2:
                sound = data == whole and found == good
                assert found is None or sound or data == other, "damaged entry accepted"
            cache.entries()
            assert cache.save(NAMES[1], good)
            assert cache.load(NAMES[1]) == good
            cache.clear()
        finally:
            if before is None:
                del os.environ["CHASLES_CACHE"]
            else:
                os.environ["CHASLES_CACHE"] = before

    return case


def _strange(rng: random.Random, path: Path, whole: bytes) -> None:
    """Create a folder, a pipe or a symbolic link in place of an entry."""
    turn = rng.randrange(4)
    if turn == 0:
        path.mkdir()
    elif turn == 1 and hasattr(os, "mkfifo"):
        os.mkfifo(path, 0o600)
    elif turn == 2:
        target = path.with_name("elsewhere")
        target.write_bytes(whole)
        path.symlink_to(target)
    else:
        path.symlink_to(path)
