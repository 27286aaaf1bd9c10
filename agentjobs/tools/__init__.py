"""Tools: what an agent may do. docs/tools.md shows how to write one."""
