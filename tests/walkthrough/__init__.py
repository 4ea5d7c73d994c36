"""Runs the playbook walkthrough on the test bed, twice in a row, and checks what it wrote.

What this proves: the lab of docs/walkthrough.md works as the page says, on a real API server, scheduler and kubelet, on Nodes of kwok
and on real containerds of several lines; a second run changes nothing. The expected words are those of the page and of LOADING's
measurements, not of the playbook: each was seen on the programs themselves.

    python -m tests.walkthrough            into ./gpurt, which is kept
"""
