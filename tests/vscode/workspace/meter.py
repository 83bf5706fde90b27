"""What is counted while a model trains."""


class Meter:
    def __init__(self):
        self.values = []

    def update(self, value):
        self.values.append(value)
