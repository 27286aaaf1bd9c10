"""Durable jobs for agents on Temporal. docs/architecture.md is the map of this package."""

__version__ = "0.3.0"
