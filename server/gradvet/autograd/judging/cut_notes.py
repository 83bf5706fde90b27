"""What the run notes about cuts and forced leaves, for a judgement at its end."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from gradvet.autograd.memory.domain import YES, Node, Tensor
from gradvet.autograd.memory.values import Ref, Value, atoms


@dataclass(slots=True)
class CutNotes:
    """Leaves that were made of computed values, and what backwards found on their way.

    `forced` are such leaves with the cut that stands for them; `flagged` unknown things whose
    `requires_grad` was set, and where; `wanted` leaves whose gradient is read; `roots` backwards that
    reach nothing but forced leaves, `alone` those from such a leaf itself. `leaves_of` are the leaves that each
    backward reached; `scored` the cuts whose result was given to a `log_prob`, `fed` those whose result was
    given to a module, `gathered` those of collectives, with the tensors that were filled. `behind`, `unknown_of` and
    `unknown_losses` are the unknown things from which cut values, tensors and losses were
    computed; `copied` are constructors that were given a tensor. `no_backward` are ops that
    torch records and cannot run backward, `raising` those that a backward came to. `trained` are unknown
    things that a program detaches or gives to an optimizer, `weighted` those by which the result of a cut
    was multiplied.
    """

    forced: dict[int, int] = field(default_factory=dict)
    flagged: dict[int, ast.AST] = field(default_factory=dict)
    wanted: set[int] = field(default_factory=set)
    roots: dict[int, tuple[ast.AST, frozenset[int]]] = field(default_factory=dict)
    alone: set[ast.AST] = field(default_factory=set)
    leaves_of: dict[ast.AST, set[int]] = field(default_factory=dict)
    scored: set[int] = field(default_factory=set)
    fed: set[int] = field(default_factory=set)
    gathered: dict[int, set[int]] = field(default_factory=dict)
    behind: dict[int, set[int]] = field(default_factory=dict)
    unknown_of: dict[int, frozenset[int]] = field(default_factory=dict)
    unknown_losses: dict[ast.AST, set[int]] = field(default_factory=dict)
    copied: dict[ast.Call, tuple[tuple[ast.AST, ...], Tensor]] = field(default_factory=dict)
    no_backward: set[ast.AST] = field(default_factory=set)
    raising: dict[ast.AST, ast.AST] = field(default_factory=dict)
    trained: set[int] = field(default_factory=set)
    weighted: dict[int, set[int]] = field(default_factory=dict)

    def unknown_behind(self, cut: int, nodes: Iterable[int]) -> set[int]:
        """The unknown things behind a cut, of which it was told itself or behind the nodes that it cuts off."""
        found = self.behind.get(cut, set()).copy()
        return found.union(*(self.unknown_of.get(at & ~1, ()) for at in nodes))

    def made_leaf(self, leaf: int, cut: int) -> None:
        """A computed value was made a leaf that requires grad; `cut` stands for the place."""
        self.forced[leaf & ~1] = cut

    def may_train(self, value: Value) -> None:
        """Something unknown is treated as what requires grad."""
        self.trained |= {atom.address & ~1 for atom in atoms(value) if type(atom) is Ref}

    def gradient_wanted(self, leaf: int) -> None:
        """The gradient of a leaf was read or asked for."""
        self.wanted.add(leaf & ~1)

    def from_unknown(self, site: ast.AST, things: frozenset[int]) -> None:
        """A loss was computed from these unknown things."""
        self.unknown_losses.setdefault(site, set()).update(things)

    def rooted(self, root: Tensor, site: ast.AST, nodes: dict[int, Node]) -> None:
        """A backward began here and visited these nodes; it may reach nothing but leaves made of computed values."""
        if self.no_backward and root.requires_grad == YES:
            for node in nodes.values():
                if node.node in self.no_backward:
                    self.raising.setdefault(node.node, site)
        leaves = frozenset(leaf & ~1 for leaf in root.leaves)
        if not leaves or not leaves <= self.forced.keys():
            return
        cuts = {self.forced[leaf] for leaf in leaves}
        if root.is_leaf == YES:
            self.alone.add(site)
        if root.is_leaf == YES or cuts <= root.dead:
            for cut in cuts:
                self.roots.setdefault(cut, (site, leaves))
