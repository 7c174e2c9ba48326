"""Functions of one model: traced, chosen, differentiated, compiled, and called."""
