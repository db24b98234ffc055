"""recommendation/paper."""
