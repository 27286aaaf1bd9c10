"""Deterministic: workflows carry out what agentjobs/domain/decisions.py decides, and touch nothing else."""
