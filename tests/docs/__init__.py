"""The documentation site: assembled from docs/, the core's fault table and the collection's own documentation, and checked."""
