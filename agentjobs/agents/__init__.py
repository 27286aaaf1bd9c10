"""Agents: what each is told, which tools it may use, within which limits, under which policy version."""
