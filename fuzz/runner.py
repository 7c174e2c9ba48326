"""Run child processes one after the other, and record their findings, crashes and hangs."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzz import ROOT
from fuzz.child import STATE, kept
from fuzz.targets import TARGETS

SLICE = 30.0
"""Run time of a child in seconds; then the next child starts."""

CHECKED = 4
"""One child in `CHECKED` runs in checked mode."""

BEGIN = 120.0
"""Time limit in seconds for a child to start its first case."""

TOLD = 5.0
"""Seconds between progress messages."""

FAST = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Folder for the files of cases: a folder in memory, or None if the system has none."""

SAME = 3
"""Maximum number of findings of one kind that are written to files."""


@dataclass
class Report:
    """Progress and findings of a run."""

    target: str
    folder: Path
    begun: float = field(default_factory=time.monotonic)
    cases: int = 0
    checked: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    def line(self) -> str:
        """Return a progress message."""
        calls = TARGETS[self.target].calls
        rate = calls * self.cases / (time.monotonic() - self.begun)
        found = f"{sum(self.kinds.values())} findings of {len(self.kinds)} kinds"
        part = f" ({calls * self.checked:,} checked)" if self.checked else ""
        done = f"{time.monotonic() - self.begun:.0f} s, {calls * self.cases:,} calls{part}"
        return f"{self.target}: {done}, {rate:,.0f}/s, {found}"

    def found(self, finding: dict[str, Any], checked: bool) -> None:
        """Count a finding; write it to a file unless `SAME` findings of its kind exist."""
        kind = finding["kind"]
        self.kinds[kind] += 1
        if self.kinds[kind] > SAME:
            return
        mode = " --checked" if checked else ""
        again = f"python -m fuzz {self.target} --replay {finding['seed']}{mode}"
        name = re.sub(r"\W+", "-", f"{self.target}-{kind}").strip("-")[:80]
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}-{finding['seed']}.json"
        path.write_text(json.dumps({"again": again, "checked": checked, **finding}, indent=1))
        print(f"found: {kind}: {finding['message']:.200}\n  {again}\n  {path}", flush=True)


def run(name: str, seconds: float, first: int, folder: Path, checked: bool | None = None) -> Report:
    """Run a target for the given number of seconds.

    `checked` is True to run all children in checked mode, and False to run none. With None, one
    child in `CHECKED` runs in checked mode if the target supports it.
    """
    report, seed, number = Report(name, folder), first, 0
    end = time.monotonic() + seconds
    told = time.monotonic()
    while (left := end - time.monotonic()) > 0:
        mode = TARGETS[name].checked and number % CHECKED == CHECKED - 1
        mode = mode if checked is None else checked
        length = min(SLICE, left, max(seconds / CHECKED, 1.0))
        seed, told = _child(report, seed, length, mode, told)
        number += 1
    return report


def _child(
    report: Report, seed: int, seconds: float, checked: bool, told: float
) -> tuple[int, float]:
    """Run one child until it ends or hangs.

    Return the first seed for the next child, and the time of the last progress message.
    """
    target, work = TARGETS[report.target], Path(tempfile.mkdtemp(prefix="chasles-fuzz-", dir=FAST))
    state, output, errors = (work / each for each in ("state", "output", "errors"))
    state.write_bytes(STATE.pack(-1, 0))
    with output.open("wb") as out, errors.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "fuzz.child", report.target, str(seed), str(seconds), str(work)],
            cwd=ROOT,
            env=os.environ | {"CHASLES_CHECKED": str(int(checked))},
            stdout=out,
            stderr=said,
            start_new_session=True,
        )
        last, since, read, before = (-1, 0), time.monotonic(), 0, report.cases
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
            now = STATE.unpack(state.read_bytes())
            if now[0] != last[0]:
                last, since = now, time.monotonic()
            report.cases = before + now[1]
            read = _findings(report, output, read, checked)
            if time.monotonic() - told > TOLD:
                told = time.monotonic()
                print(report.line(), flush=True)
            if process.poll() is not None:
                break
            if time.monotonic() - since > (BEGIN if now[0] == -1 else target.limit):
                break
    ended = process.poll()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # with the processes that it has started
    process.wait()
    _findings(report, output, read, checked)
    current, done = STATE.unpack(state.read_bytes())
    report.cases = before + done
    report.checked += done if checked else 0
    if current != -2:
        kind = "hang" if ended is None else f"crash {ended}"
        message = errors.read_bytes().decode("utf-8", "replace")[-3000:].strip()
        cases = [path for path in work.iterdir() if path.name.startswith("case-")]
        files = kept(cases[0]) if cases else {}
        finding = {"seed": current, "kind": kind, "message": message, "files": files}
        report.found(finding, checked)
        if current == -1:
            raise SystemExit(f"{report.target}: the child process did not start: {message}")
    shutil.rmtree(work, ignore_errors=True)
    return seed + done + (current != -2), told


def _findings(report: Report, output: Path, read: int, checked: bool) -> int:
    """Record the findings in a child's output after position `read`; return the new position.

    An incomplete last line is left for the next call.
    """
    text = output.read_bytes()[read:]
    whole, newline, _ = text.rpartition(b"\n")
    for line in whole.splitlines():
        report.found(json.loads(line), checked)
    return read + len(whole) + len(newline)
