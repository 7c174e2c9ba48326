"""Dynamics with Cartesian tensors (Balafoutis and Patel 1991), extended from chains to trees."""
