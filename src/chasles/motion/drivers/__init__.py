"""Drivers that run simulations: compiled, or step by step with events and rigid contact."""
