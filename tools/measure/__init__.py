"""Measures torch's autograd behaviour and writes the data file that Gradvet's server reads."""
