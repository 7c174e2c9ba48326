"""What iterates: drivers around compiled straight-line programs."""
