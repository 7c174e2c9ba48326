"""Machine code for processors, compiled by LLVM; `kernel` is the entry point."""
