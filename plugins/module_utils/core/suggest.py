# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Did you mean: the nearest of the names that exist."""

from __future__ import annotations

import difflib
import re
import typing as t

# difflib's own default (0.6) calls "crun" a near name of "runc"; a wrong suggestion costs more than none.
_CUTOFF = 0.7


def nearest(word: str, known: t.Iterable[str]) -> str | None:
    """The known name that is most probably meant by the word, or None.

    A name that differs in nothing but letter case and separators wins over one that differs in letters.
    The word itself is never suggested. Equal candidates are decided by the alphabet, so the answer is stable.
    """
    candidates = sorted(set(known) - {word})
    for candidate in candidates:
        if _bare(candidate) == _bare(word):
            return candidate
    scored = [(_likeness(word, candidate), candidate) for candidate in candidates]
    good = [pair for pair in scored if pair[0] >= _CUTOFF]
    if not good:
        return None
    best = max(score for score, _name in good)
    return next(name for score, name in good if score == best)


def did_you_mean(word: str, known: t.Iterable[str]) -> str:
    """ '; did you mean "x"?' or the empty string, to be put behind a sentence."""
    near = nearest(word, known)
    return f'; did you mean "{near}"?' if near else ""


def _bare(name: str) -> str:
    return re.sub(r"[-_./ ]", "", name.lower())


def _likeness(word: str, candidate: str) -> float:
    """0 to 1. Anagrams of neighbouring letters (nvidai, nvidia) are the commonest slip, so letters in any
    order count a little."""
    matcher = difflib.SequenceMatcher(None, word.lower(), candidate.lower())
    if matcher.real_quick_ratio() < _CUTOFF or matcher.quick_ratio() < _CUTOFF:
        return 0.0  # cheap upper bounds of the ratio; most names end here
    if sorted(word.lower()) == sorted(candidate.lower()) and word[:1].lower() == candidate[:1].lower():
        return max(matcher.ratio(), 0.9)
    return matcher.ratio()
