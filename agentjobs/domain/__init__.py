"""The pure centre: state in, event in, next state and next action out. No clock, no network, no database."""
