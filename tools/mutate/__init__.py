"""Known faults, put into real training code one at a time, and what a checker finds of them."""
