"""The systems that are measured, each in the form that its own documentation shows (benchmarks/README.md)."""
