"""Mutated foreign bytes into every parser: no traceback but the collection's own errors, no hang, bounded memory.

    python -m tests.fuzz [--time 60] [--seed 1] [--only toml-scan cri-status] [--input cri-status:1:4711]

corpus.py takes real inputs out of tests/cases; mutate.py changes bytes, texts and trees; targets.py names the parsers and the errors that
each may raise; __main__.py runs them in a process of their own under limits, and prints what fell.
"""
