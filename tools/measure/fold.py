"""Folds what several calls of one name showed into one record of the table."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tools.measure import kinds
from tools.measure.seen import Out, Seen
from tools.measure.signature import returns_list

Record = dict[str, Any]
ALWAYS, MAYBE, NEVER = "always", "maybe", "never"
LIST_FROM = 3


def answer(values: Iterable[bool]) -> str:
    """`always`, `maybe` or `never`."""
    listed = list(values)
    return NEVER if not any(listed) else ALWAYS if all(listed) else MAYBE


def listed(values: Mapping[str, str]) -> list[str]:
    """Names in order, without those that never do; a question mark after those that may."""
    return sorted(n + ("?" if v == MAYBE else "") for n, v in values.items() if v != NEVER)


def fold(seen: Sequence[Seen]) -> Record:
    """The record of a callable. Labelled forms, and results of another kind, go under `forms`."""
    plain = [s for s in seen if not s.case.form]
    groups: dict[str, list[Seen]] = {}
    for s in plain or seen:
        groups.setdefault(s.ret, []).append(s)
    main = min(groups, key=lambda ret: (ret != "tensor", _shortest(groups[ret])))
    record = fold_record(groups[main])
    if seen[0].case.params:
        record["params"] = list(seen[0].case.params)
    forms = {ret: some for ret, some in groups.items() if ret != main}
    if plain:
        for s in seen:
            if s.case.form:
                forms.setdefault(s.case.form, []).append(s)
    made = {}
    for form, some in forms.items():
        made[form] = fold_record(some)
        condition = _condition(some, [s for s in seen if s not in some])
        if condition:
            made[form]["when"] = condition
    if made:
        record["forms"] = made
    return record


def _shortest(seen: Sequence[Seen]) -> int:
    """How few arguments these calls take: the plainest way to call is the main one."""
    return min(len(s.case.given) for s in seen)


def fold_record(seen: Sequence[Seen]) -> Record:
    """The facts of calls that all return the same kind of thing, without what goes without saying."""
    record: Record = {}
    ret = Counter(s.ret for s in seen).most_common(1)[0][0]
    if ret != "tensor":
        record["ret"] = ret
    fields = next((s.fields for s in seen if s.fields), ())
    if fields:
        record["fields"] = list(fields)
    outs = _outputs(seen)
    if outs:
        record["out"] = outs
    grad_from = _grad_from(seen)
    if grad_from != (_first(seen) if any(o.get("grad") != NEVER for o in outs) else []):
        record["grad_from"] = grad_from
    facts = {
        "mutates": listed(
            {
                p: answer(p in s.mutates for s in seen if p in s.inputs)
                for p in _union(s.mutates for s in seen)
            }
        ),
        "raises_on_grad": _raises(seen),
        "no_backward": listed(
            {
                p: answer(s.no_backward[p] for s in seen if p in s.no_backward)
                for p in _union(s.no_backward for s in seen)
            }
        ),
        "saves": _saves(seen, outs),
        "leaf_ok": any(s.leaf_ok for s in seen),
        "needs_grad": any(s.needs_grad for s in seen),
        "no_grad_inside": all(s.no_grad_inside for s in seen if not s.brief),
        "saves_hidden": answer(s.hidden for s in seen if s.probed).replace(NEVER, ""),
    }
    record.update({key: value for key, value in facts.items() if value})
    twice = [s.twice for s in seen if s.twice is not None]
    if twice:
        word = {ALWAYS: "raises", NEVER: "fine", MAYBE: MAYBE}[answer(twice)]
        if word != ("raises" if record.get("saves") else "fine"):
            record["twice"] = word
    flat = [s.flat for s in seen if s.flat is not None]
    if flat and all(flat) and not record.keys().isdisjoint({"saves", "saves_hidden", "twice"}):
        record["flat"] = True  # where nothing is kept it goes without saying
    return record


def _union(sets: Iterable[Iterable[str]]) -> list[str]:
    return sorted({item for some in sets for item in some})


def _outputs(seen: Sequence[Seen]) -> list[Record]:
    shapes = {s.paths for s in seen if s.paths}
    flat = all(p.isdigit() for shape in shapes for p in shape)
    ret = seen[0].ret
    several = len({len(s) for s in shapes}) > 1 or returns_list(seen[0].case.name) or _alike(seen)
    many = flat and ret in ("tuple", "list") and several
    if many:
        return [{"many": True} | _output("*", seen)] if shapes else []
    found = []
    for i, path in enumerate(_union(shapes)):
        made = _output(path, [s for s in seen if path in s.paths])
        if path != str(i):
            made["at"] = path
        found.append(made)
    return found


def _alike(seen: Sequence[Seen]) -> bool:
    """Whether a single call gave three or more outputs in no way different: a list, not a tuple of fields."""
    return all(len(s.paths) >= LIST_FROM for s in seen) and all(
        len(set(map(_facts, s.outs.values()))) == 1 for s in seen
    )


def _facts(out: Out) -> tuple[bool, bool, bool, str | None]:
    return out.grad, out.share, out.view, out.fn


def _output(path: str, seen: Sequence[Seen]) -> Record:
    outs = _named(path, (s.outs for s in seen))
    tracked = outs + _named(path, (v for s in seen for v in s.varied))
    every = [o for o in tracked + _named(path, (v for s in seen for v in s.untracked)) if not o.empty]
    record: Record = {}
    grad = answer(o.grad for s in seen if s.differentiable for p, o in s.outs.items() if path in ("*", p))
    if grad != ALWAYS:
        record["grad"] = grad
    same, view = answer(o.same for o in every), answer(o.view for o in every)
    share = answer(o.share for o in every)
    if same != NEVER:
        record["same"] = same
    if view != NEVER:
        record["view"] = view
    inner = answer(o.inner for o in every)
    if inner != NEVER:
        record["inner"] = inner
    if share != (ALWAYS if ALWAYS in (same, view) else MAYBE if MAYBE in (same, view) else NEVER):
        record["share"] = share
    origins = _union([{o.of for o in every if o.of}])
    if origins and origins != _first(seen):
        record["of"] = origins
    at = "0" if path == "*" else path
    kind = kinds.rule(at, [(s.first, s.kinds) for s in seen if at in s.paths and s.kinds])
    if kind != "same" and same != ALWAYS:
        record["dtype"] = kind
    nodes = _union([{o.fn for o in tracked if o.fn}])
    if nodes:
        record["fn"] = nodes
    leaf = answer(o.leaf for o in outs if not o.empty)
    if leaf != NEVER:
        record["leaf"] = leaf
    zeros = [o.zero for o in outs if o.zero is not None]
    if zeros and all(zeros):
        record["zero"] = True
    return record


def _named(path: str, found: Iterable[Mapping[str, Out]]) -> list[Out]:
    return [o for outs in found for p, o in outs.items() if path in ("*", p)]


def _first(seen: Sequence[Seen]) -> list[str]:
    """The parameter that an output shares with unless the record says otherwise."""
    return [p.lstrip("*").split("|")[0] for p in seen[0].case.params[:1]]


def _grad_from(seen: Sequence[Seen]) -> list[str]:
    found: dict[str, list[bool]] = {}
    for s in seen:
        for p, through in s.grad_from.items():
            found.setdefault(p, []).append(through)
    return listed({p: answer(values) for p, values in found.items()})


def _raises(seen: Sequence[Seen]) -> Record:
    found = {}
    for p in _union(s.raises for s in seen):
        sure = all(p in s.raises for s in seen if p in s.inputs)
        found[p if sure else f"{p}?"] = next(s.raises[p] for s in seen if p in s.raises)
    return found


def _saves(seen: Sequence[Seen], outs: Sequence[Record]) -> Record:
    """Saved inputs by parameter, saved outputs by their place in `outs`, with the inputs that need them.

    What some inputs always need and others at times is told twice, the second time with a question mark.
    """
    probed = [s for s in seen if s.probed]
    everything = sorted({p for s in probed for p, through in s.grad_from.items() if through})
    found: Record = {}
    for key, saves in (("in", [s.saves_in for s in probed]), ("out", [s.saves_out for s in probed])):
        side: Record = {}
        for operand in _union(saves):
            present = [
                (x.get(operand, ()), s)
                for x, s in zip(saves, probed, strict=True)
                if operand in (s.inputs if key == "in" else s.paths)
            ]
            needs = _union(saved_for for saved_for, _ in present)
            sure = [p for p in needs if all(p in saved_for for saved_for, s in present if _asked_for(s, p))]
            name = operand if key == "in" else _place(operand, outs)
            for word, some in ((name, sure), (f"{name}?", [p for p in needs if p not in sure])):
                if some:
                    side[word] = "*" if some == everything else some
        if side:
            found[key] = side
    return found


def _asked_for(seen: Seen, parameter: str) -> bool:
    """Whether a call was gone back from for the gradient of a parameter alone."""
    return seen.grad_from.get(parameter, False) and not seen.no_backward.get(parameter, False)


def _place(path: str, outs: Sequence[Record]) -> str:
    """Where an output stands in the record; one entry stands for all elements of a list."""
    return next((str(i) for i, o in enumerate(outs) if o.get("many") or o.get("at", str(i)) == path), path)


def _condition(some: Sequence[Seen], others: Sequence[Seen]) -> dict[str, str]:
    """One argument that tells these calls from the others: `{"dim": "number"}`, `{"other": "given"}`."""
    best: tuple[int, dict[str, str]] = (9, {})
    for p in _union(s.case.given for s in (*some, *others)):
        mine = {s.case.given.get(p, "absent") for s in some}
        theirs = {s.case.given.get(p, "absent") for s in others}
        if mine & theirs or not theirs:
            continue
        word, cost = "|".join(sorted(mine)), len(mine) + ("absent" in mine)
        if theirs <= {"absent", "none"}:
            word, cost = ("given", 2) if len(mine) > 1 else (word, 1)
        best = min(best, (cost, {p: word}), key=lambda b: b[0])
    weak = any("absent" in word for word in best[1].values())
    return best[1] if best[1] and not weak else _flags(some, others) or best[1]


def _flags(some: Sequence[Seen], others: Sequence[Seen]) -> dict[str, str]:
    """Parameters of which these calls give at least one a kind and the others none: `{"max|min": "number"}`."""
    for kind in ("true", "number"):
        flags = [
            p
            for p in _union(s.case.given for s in some)
            if any(s.case.given.get(p) == kind for s in some)
            and not any(s.case.given.get(p) == kind for s in others)
        ]
        if flags and all(any(s.case.given.get(p) == kind for p in flags) for s in some):
            return {"|".join(flags): kind}
    return {}
