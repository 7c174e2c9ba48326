"""Motion in time: one step, two drivers of it, contact, controllers and what they leave."""
