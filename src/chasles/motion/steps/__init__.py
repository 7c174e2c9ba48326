"""Time step: the next state from the current one, on arrays or on symbols."""
