"""Kernels for NVIDIA's GPUs, in CUDA C: `kernel` is its door."""
