"""Threads, pools of them, futures and queues."""

import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.pool import ThreadPool
from queue import Queue

import torch
from torch import nn

model = nn.Linear(4, 2)
results = {}
lock = threading.Lock()


def worker(i, x):
    y = model(x)
    with lock:
        results[i] = y.detach()


threads = []
for i in range(3):
    t = threading.Thread(target=worker, args=(i, torch.randn(2, 4)))
    t.start()
    threads.append(t)
for t in threads:
    t.join()
print(results[0].requires_grad)


def infer(x):
    with torch.no_grad():
        return model(x)


with ThreadPoolExecutor(max_workers=2) as pool:
    outs = list(pool.map(infer, [torch.randn(1, 4) for _ in range(3)]))
    futures = [pool.submit(infer, torch.randn(1, 4)) for _ in range(2)]
    done = [f.result() for f in as_completed(futures)]
    fut = pool.submit(model, torch.randn(1, 4))
    y = fut.result()
total = torch.cat(outs + done)
print(total.shape, y.requires_grad)
with ThreadPool(2) as tp:
    mapped = tp.map(infer, [torch.randn(1, 4)])
print(mapped[0].requires_grad)


def producer(queue, n):
    for i in range(n):
        queue.put((torch.randn(3, 4), torch.randn(3, 2)))
    queue.put(None)


q = Queue()
th = threading.Thread(target=producer, args=(q, 3), daemon=True)
th.start()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    item = q.get()
    if item is None:
        break
    x, target = item
    loss = (model(x) - target).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
th.join()
print(loss.item())
