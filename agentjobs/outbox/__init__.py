"""The relay: what the ledger wants, Temporal is told."""
