"""What people see, as plain values in offsets: hovers, hints, rule pages, code actions. Knows no protocol."""

from gradvet.views.actions import FIX_RULE, IGNORE, PAGE, Action, actions, rule_actions
from gradvet.views.fixall import Fixed, changes, fix_all, fix_all_edits, fixed
from gradvet.views.hover import Hover, hover
from gradvet.views.inlays import KINDS, QUIET, Inlay, inlays
from gradvet.views.page import readable, rule_url, summary
from gradvet.views.sharing import shared_places

__all__ = [
    "FIX_RULE",
    "IGNORE",
    "KINDS",
    "PAGE",
    "QUIET",
    "Action",
    "Fixed",
    "Hover",
    "Inlay",
    "actions",
    "changes",
    "fix_all",
    "fix_all_edits",
    "fixed",
    "hover",
    "inlays",
    "readable",
    "rule_actions",
    "rule_url",
    "shared_places",
    "summary",
]
