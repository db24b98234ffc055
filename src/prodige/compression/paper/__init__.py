"""compression/paper."""
