"""The edges: activities touch the world, and only through the effect protocol (executor.py)."""
