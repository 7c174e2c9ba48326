"""Simulation: steps, compiled and interpreted drivers, contact, controllers and records."""
