"""Self-checks of a robot: methods, backends, physical laws and derivatives."""

from chasles.checks.verify import CHECKS, Result, Verification, reasons, verify

__all__ = ["CHECKS", "Result", "Verification", "reasons", "verify"]
