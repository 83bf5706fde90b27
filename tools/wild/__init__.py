"""Correct code that many people use: what Gradvet says of it, and whether that is true."""
