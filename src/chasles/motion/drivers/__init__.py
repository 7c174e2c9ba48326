"""Drivers that take many steps: compiled, or one by one with events and rigid contact."""
