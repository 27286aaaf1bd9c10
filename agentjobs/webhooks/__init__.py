"""Signed messages to addresses that others name: where they may go, how they are signed and sent."""
