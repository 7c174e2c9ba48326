"""Complementarity problems, quadratic programs and cones."""
