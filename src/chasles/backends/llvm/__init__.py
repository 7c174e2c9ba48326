"""Machine code for processors, by LLVM: `kernel` is its door."""
