"""Checks of a robot by itself: methods, backends, physics and derivatives against each other."""

from chasles.checks.verify import Result, Verification, verify

__all__ = ["Result", "Verification", "verify"]
