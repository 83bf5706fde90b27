"""What people read, in their language. Everybody else writes English; here it is looked up.

A text is looked up by its skeleton (`skeleton.py`): `total` and `loss` in "`total` keeps the graph of `loss`"
are holes, so that a catalogue holds each sentence once. What has no entry as a whole may be made of parts that
have one. What has none at all stays English.
"""

from gradvet.words.catalogue import words_for
from gradvet.words.english import ENGLISH, Words

__all__ = ["ENGLISH", "Words", "words_for"]
