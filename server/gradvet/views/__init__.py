"""What people see, as plain values in offsets: hovers, rule pages, code actions. Knows no protocol."""

from gradvet.views.actions import Action, actions
from gradvet.views.fixall import Fixed, changes, fix_all, fixed
from gradvet.views.hover import Hover, hover
from gradvet.views.page import readable, rule_url, summary

__all__ = [
    "Action",
    "Fixed",
    "Hover",
    "actions",
    "changes",
    "fix_all",
    "fixed",
    "hover",
    "readable",
    "rule_url",
    "summary",
]
