"""Runs a Python program under real torch and records what autograd held for every expression.

`python -m tools.probe FILE` shows it; `python -m tools.probe.compare PATH...` holds it against the dry run.
Only `perform`, `recorder` and `worker` import torch, and they run in processes of their own.
"""
