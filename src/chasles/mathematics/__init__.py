"""Mathematics of rigid-body motion: vectors, rotations, spatial vectors and 4x4 matrices."""
