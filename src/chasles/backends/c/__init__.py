"""C that needs nothing but a compiler: `library` is its door."""
