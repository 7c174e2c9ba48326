"""Check a robot's functions against each other, physical laws and finite differences."""

from chasles.checks.verify import CHECKS, Result, Verification, reasons, verify

__all__ = ["CHECKS", "Result", "Verification", "reasons", "verify"]
