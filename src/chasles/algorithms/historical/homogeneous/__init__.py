"""Homogeneous 4x4 matrices (Legnani et al. 1996): methods used only by name."""
