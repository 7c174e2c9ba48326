"""Algorithms on homogeneous 4x4 matrices (Legnani et al. 1996): one public function a file."""
