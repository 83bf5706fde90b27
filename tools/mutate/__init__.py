"""Known faults, put into real training code one at a time: how many does a tool find?"""
