"""The console: server-rendered pages over what the API does, for people with a key."""
