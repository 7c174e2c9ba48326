"""Inverse kinematics of arms, closed loops and a humanoid, and for unreachable targets."""
