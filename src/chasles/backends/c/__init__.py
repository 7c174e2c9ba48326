"""Generation of C code that needs only a C compiler; `library` is the entry point."""
