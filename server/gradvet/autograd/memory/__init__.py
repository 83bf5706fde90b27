"""What the dry run holds: abstract values, the store with its trail, names of addresses, scopes."""
