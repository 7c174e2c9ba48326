"""A step of time: the state after it from the state before it, on arrays or on symbols."""
