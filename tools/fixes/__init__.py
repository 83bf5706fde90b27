"""Whether safe fixes are safe: programs are run under torch with and without them, and what they train is compared."""
