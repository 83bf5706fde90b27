"""Python's shape: trees, names and edits. Knows no torch."""
