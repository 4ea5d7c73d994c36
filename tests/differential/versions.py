"""The exact versions of the lines under test, for the product's table of rules where no daemon tells its own."""

from __future__ import annotations

VERSIONS = {
    "1.4": "1.4.13",
    "1.6": "1.6.20",
    "1.7": "1.7.24",
    "2.0": "2.0.11",
    "2.1": "2.1.9",
    "2.2": "2.2.7",
    "2.3.4": "2.3.4",
    "2.3": "2.3.5",
    "2.4": "2.4.0",
}
