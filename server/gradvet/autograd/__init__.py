"""What torch would hold: the abstract interpreter, its knowledge of torch, and what a run found out."""
