"""Steps in a row: in machine code, or one by one with events and rigid contact."""
