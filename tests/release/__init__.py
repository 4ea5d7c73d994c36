"""`make release-check`: what a release will be, made and checked."""
