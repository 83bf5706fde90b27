"""Judgements that need more than one moment of a run, and the events that come of them at its end."""
