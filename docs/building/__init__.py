"""What the site adds to the pages."""
