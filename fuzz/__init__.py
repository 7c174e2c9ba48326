"""Fuzzers: random and hostile input for every door of chasles. Not installed with the library.

    python -m fuzz --list
    python -m fuzz doors --minutes 10 --seed 0
    python -m fuzz doors --replay 1234 --checked
    python -m fuzz soak --minutes 60

A target is a function of random numbers; the same target and seed give the same case. Cases run in
a child process, which is started again after a crash or a hang. A part of the time the child runs
generated code in the checked mode (`CHASLES_CHECKED=1`). What is found is written to a folder: one
file for each kind of finding, with the seed, and the files that the case had.

Held is: no crash; no case takes longer than its limit; errors are `chasles.ChaslesError`, or what
the documentation names; results are those of an oracle where one is cheap.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "fuzz" / "corpus"

for _folder in ("tests/formats", "tests/backends", "tests"):  # whose samples and mutators are used
    if str(ROOT / _folder) not in sys.path:
        sys.path.append(str(ROOT / _folder))
