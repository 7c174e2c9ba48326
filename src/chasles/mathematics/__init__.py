"""The mathematics of rigid bodies, with one folder per formalism."""
