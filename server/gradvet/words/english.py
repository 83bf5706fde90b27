"""English, in which everything is written: it costs nothing to say it as it is."""


class Words:
    """What is said to one person, in the language that they read; here it is English."""

    def say(self, text: str) -> str:
        """A text of one line, or several texts below one another."""
        return text

    def page(self, markdown: str) -> str:
        """A text in Markdown."""
        return markdown


ENGLISH = Words()
