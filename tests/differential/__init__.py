"""Random configurations, real daemons, and the product's answer beside the daemon's own.

    python -m tests.differential --pairs 300 --seed 1 [--lines 1.7 2.1] [--keep DIRECTORY]

A pair is a random tree of files and a release line. generate.py makes the tree from ingredients and knows what it wrote;
judge.py starts the daemon, asks it, lets the product collect and interpret, and compares; __main__.py counts and prints.
"""
