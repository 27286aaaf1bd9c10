"""The embedded stack of `python starter.py dev`: PostgreSQL, the Temporal server, the API, the relay, the workers.

`run.run_stack` runs it until a signal; `stack.running_stack` for the length of a block. Below them: a supervisor
of keepers of children, the two servers, and the home that keeps everything.
"""
