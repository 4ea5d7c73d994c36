"""Waiting for something that another process brings about."""

from __future__ import annotations

import time
import typing as t


def wait_until(holds: t.Callable[[], object], seconds: float, pause: float = 0.1) -> bool:
    """Asks again and again, for so many seconds at most; whether it held in the end."""
    deadline = time.monotonic() + seconds
    while True:
        if holds():
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
