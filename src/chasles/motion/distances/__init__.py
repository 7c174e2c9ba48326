"""Distances between shapes of a robot, and to obstacles of the world."""
