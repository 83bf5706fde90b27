"""What torch's own error messages and warnings mean: which rule tells of their cause, and what is no fix."""

from gradvet.errors.explanation import Explanation, Suspect, explain
from gradvet.errors.pasted import Pasted, read_pasted

__all__ = ["Explanation", "Pasted", "Suspect", "explain", "read_pasted"]
