"""Mathematics of rigid-body motion, with one folder per formalism."""
