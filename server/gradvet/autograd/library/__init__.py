"""What calls into torch, numpy and frameworks do to abstract values."""
