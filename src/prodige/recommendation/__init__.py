"""recommendation."""
