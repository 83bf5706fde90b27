"""Random programs, run under torch and dry, and made small when the two disagree."""
