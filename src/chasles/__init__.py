"""chasles: rigid-body kinematics and dynamics, written as in the books and compiled."""
