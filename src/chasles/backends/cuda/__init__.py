"""Kernels for NVIDIA GPUs, in CUDA C; `kernel` is the entry point."""
