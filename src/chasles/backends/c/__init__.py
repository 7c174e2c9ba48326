"""Generated C code that needs only a compiler; `library` is the entry point."""
