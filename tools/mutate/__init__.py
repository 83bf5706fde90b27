"""Known faults, put into real training code one at a time: and how many of them a tool finds."""
