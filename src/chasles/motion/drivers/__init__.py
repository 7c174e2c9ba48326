"""Drivers that run motions: compiled, or step by step with events and rigid contact."""
