"""C that needs only a compiler: `library` is its door."""
