"""Runs random programs under torch and dry, and makes those small in which the two disagree."""

import re
from dataclasses import dataclass, replace
from functools import partial

from tools.fuzz.generate import generate
from tools.fuzz.repair import repair
from tools.fuzz.shrink import shrink
from tools.probe.client import Prober
from tools.probe.false_alarms import FalseAlarm, false_alarms
from tools.probe.judgement import Judgement, judge
from tools.probe.observed import Observation, Program

STATEMENTS = 14
SECONDS = 5.0
"""How long a program may run: one that appends to the list it goes through has no end."""

Fault = tuple[str, str]
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Trial:
    """A random program and what came of it; `crash` is the exception of a dry run that failed."""

    program: Program
    observation: Observation
    judgement: Judgement
    alarms: tuple[FalseAlarm, ...] = ()
    crash: str = ""

    @property
    def faults(self) -> dict[Fault, str]:
        """What is wrong, told so that a smaller program may have the same wrong, and each in full."""
        roots = [found for found in self.judgement.contradictions if found.root]
        faults = {
            (one.field, one.observed): f"{one.field} {one.observed} {one.said} {_NUMBER.sub('', one.text)}"
            for one in roots or self.judgement.contradictions
        }
        faults |= {(alarm.rule, "false alarm"): f"{alarm.rule} {alarm.message}" for alarm in self.alarms}
        return faults | ({("crash", self.crash): self.crash} if self.crash else {})


def trial(seed: int, prober: Prober, statements: int = STATEMENTS) -> Trial:
    """The program of a seed, run under torch and dry."""
    text = generate(seed, statements)
    program, observation = repair(Program(text, f"<seed {seed}>", ""), partial(prober.probe, brief=True))
    return examine(program, observation)


def examine(program: Program, observation: Observation) -> Trial:
    """Hold the dry run of a program against what torch showed."""
    try:
        judgement = judge(program, observation)
        alarms = tuple(false_alarms(program, observation))
    except Exception as error:
        return Trial(program, observation, Judgement(), crash=f"{type(error).__name__}: {error}")
    return Trial(program, observation, judgement, alarms)


def smallest(trial: Trial, fault: Fault, prober: Prober, most_tries: int) -> Trial:
    """The same fault in a smaller program, which ends as this one did: with or without an exception."""

    def holds(text: str) -> bool:
        return fault in at(text).faults

    def at(text: str) -> Trial:
        program = replace(trial.program, text=text)
        observation = prober.probe(program)
        if (observation.failure is None) != (trial.observation.failure is None):
            return replace(trial, judgement=Judgement(), alarms=(), crash="")
        return examine(program, observation)

    return at(shrink(trial.program.text, holds, most_tries))
