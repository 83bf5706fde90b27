"""What people see, as plain values in offsets: hovers, hints, rule pages, code actions. Knows no protocol."""

from gradvet.views.actions import FIX_RULE, IGNORE, PAGE, Action, actions, rule_actions
from gradvet.views.fixall import Fixed, changes, fix_all, fix_all_edits, fixed
from gradvet.views.gradient_path import GradientPath, gradient_path
from gradvet.views.hover import Hover, hover
from gradvet.views.inlays import KINDS, QUIET, Inlay, inlays
from gradvet.views.lenses import Lens, lenses
from gradvet.views.links import Link, no_links
from gradvet.views.marks import KINDS_OF_NAMES, MARKS, Mark, marks
from gradvet.views.page import readable, rule_url, summary
from gradvet.views.regions import highlighted
from gradvet.views.sharing import shared_places

__all__ = [
    "FIX_RULE",
    "IGNORE",
    "KINDS",
    "KINDS_OF_NAMES",
    "MARKS",
    "PAGE",
    "QUIET",
    "Action",
    "Fixed",
    "GradientPath",
    "Hover",
    "Inlay",
    "Lens",
    "Link",
    "Mark",
    "actions",
    "changes",
    "fix_all",
    "fix_all_edits",
    "fixed",
    "gradient_path",
    "highlighted",
    "hover",
    "inlays",
    "lenses",
    "marks",
    "no_links",
    "readable",
    "rule_actions",
    "rule_url",
    "shared_places",
    "summary",
]
