"""What lint says: findings, and how grave they are."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The gravest first: no body is like this; probably not meant; worth a look."""


@dataclass(frozen=True)
class Finding:
    """One thing about a robot file.

    check: the row of the table of checks. severity: "error", "warning" or "note". where:
    "file:line", or the file where there is no line. part: "link 'hand'". what: the fact. why: what
    it does to results. remedy: what to do. repairable: `chasles lint --fix` can.
    """

    check: str
    severity: Severity
    where: str
    part: str
    what: str
    why: str
    remedy: str
    repairable: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {self.severity}: {self.part}: {self.what}; {self.remedy}"

    @property
    def line(self) -> int:
        """Of the file, 0 where there is none."""
        number = self.where.rpartition(":")[2]
        return int(number) if number.isdigit() else 0


def at_least(finding: Finding, severity: str) -> bool:
    """Whether a finding is as grave as that, or graver."""
    return SEVERITIES.index(finding.severity) <= SEVERITIES.index(severity)
