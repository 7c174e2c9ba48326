"""Algorithms in homogeneous 4x4 matrices (Legnani, Casolo, Righettini, Zappa 1996)."""
