"""Waiting for what should happen, with a deadline that fails loudly."""

import time

# Long enough for a cold WebKit on a busy two-core machine.
DEADLINE = 60.0
_PAUSE = 0.05


def until(what, condition, deadline=DEADLINE, report=lambda: ""):
    """The first truthy value of `condition()`; `what` names it when it never comes, `report()` says what was seen."""
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline:.0f} s: {what}\n{report()}")
        time.sleep(_PAUSE)
