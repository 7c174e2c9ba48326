"""The mathematics of rigid bodies, one folder a formalism."""
