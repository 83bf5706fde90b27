"""How Python's expressions, statements, calls and classes run on abstract values."""
