"""Fuzzers: random and hostile input for the functions and file formats of chasles.

The package is not installed with the library.

    python -m fuzz --list
    python -m fuzz doors --minutes 10 --seed 0
    python -m fuzz doors --replay 1234 --checked
    python -m fuzz soak --minutes 60

A target generates test cases from random numbers. The same target and seed give the same case.
Cases run in a child process, which is restarted after a crash or a hang. For targets that run
generated code, every fourth child runs it in checked mode (`CHASLES_CHECKED=1`). Findings are
written to a folder: one file per finding, and a few findings of each kind. The file contains the
seed and the files of the case.

The following are findings: a crash, a case that exceeds its time limit, an error that is neither a
`chasles.ChaslesError` nor documented, and a result that differs from that of an oracle.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "fuzz" / "corpus"

for _folder in ("tests/formats", "tests/backends", "tests"):  # for their samples and mutators
    if str(ROOT / _folder) not in sys.path:
        sys.path.append(str(ROOT / _folder))
