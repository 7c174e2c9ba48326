"""Inverse kinematics: arms, targets out of reach, closed loops and a humanoid, beside peers."""
