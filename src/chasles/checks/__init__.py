"""Self-checks of a robot: methods, backends, physics and derivatives are compared."""

from chasles.checks.verify import CHECKS, Result, Verification, reasons, verify

__all__ = ["CHECKS", "Result", "Verification", "reasons", "verify"]
