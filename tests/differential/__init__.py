"""Random configurations, real daemons, and the product's answer beside the daemon's own.

    python -m tests.differential --pairs 300 --seed 1 [--lines 1.7 2.1] [--keep DIRECTORY] [--only 1/2.1/17]

A pair is a random tree of files and a release line. generate.py makes the tree from ingredients (generator.py, oddities.py, aims.py,
ours.py) and knows what it wrote; judge.py starts the daemon, asks it, lets the product collect and interpret, and compares; mend.py
does the repairs that the product offers; shrink.py makes a failure small and record.py writes it as a case; possible.py is the list of
faults that must come up. __main__.py runs, counts and prints. rehearsal.py counts the faults without any daemon.
"""
