"""Real runtimes for the tests: tools (what is downloaded and built) and host (a node of its own in private namespaces)."""
