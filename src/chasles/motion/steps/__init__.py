"""Time steps from one state to the next, for arrays and for symbols."""
