"""Algorithms on spatial vectors (Featherstone 2008): one public function a file."""
