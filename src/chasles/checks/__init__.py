"""Self-checks of a robot: methods, backends, physics and derivatives against each other."""

from chasles.checks.verify import CHECKS, Result, Verification, reasons, verify

__all__ = ["CHECKS", "Result", "Verification", "reasons", "verify"]
