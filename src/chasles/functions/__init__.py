"""Select methods for robot functions; trace, differentiate, compile and call the functions."""
