"""Machine code for CPUs, compiled by LLVM; `kernel` is the entry point."""
