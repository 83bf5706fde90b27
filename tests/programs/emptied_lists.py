"""Lists of which it is not known how much is left, and what goes over them."""

import heapq
from collections import deque

import torch

pieces = list(torch.ones(3).chunk(2))
del pieces[0]
filled = torch.ones(3, requires_grad=True) * 2
for piece in pieces[1:]:
    filled.fill_(1.0)
after = filled * 1

rows = list(torch.ones(3))
for row in rows[:]:
    del rows[0]


def gone_through(items):
    for item in items:
        yield item * torch.ones(1, requires_grad=True)


last = torch.ones(1)
for row in gone_through(rows):
    last = row
later = last * 1

counted = torch.ones(1)
for number, row in enumerate(rows):
    counted = torch.ones(1, requires_grad=True)
twice = counted * 2

waiting = deque(torch.ones(2))
waiting.popleft()
waiting.pop()
met = torch.zeros(1)
for row in waiting:
    met = torch.ones(1, requires_grad=True)
sum_of_met = met + 1

filled_again = list(torch.ones(2))
filled_again.pop()
filled_again.append(torch.ones(1, requires_grad=True)[0])
total = torch.zeros(())
for row in filled_again:
    total = total + row
doubled = total * 2

heap = [3, 1, 2]
heapq.heapify(heap)
heapq.heappop(heap)
found = torch.zeros(1)
for number in heap:
    found = torch.ones(1, requires_grad=True) * number
kept = found * 2
