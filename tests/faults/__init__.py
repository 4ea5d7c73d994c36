"""`python -m tests.faults`: the writer's transaction on real daemons, with a fault at every place where one can happen.

What this proves: whatever ends a change of a node's container runtime (a killed process at each system call that changes something,
a failing one, a full disk, a daemon that does not come back, a cut connection), the daemon then runs with the old configuration
or the new one, complete, and one more run converges. The judge is cri-ask, which shares no code with the product; the product has
no hook for this: strace does the killing.
"""
