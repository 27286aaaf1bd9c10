"""The HTTP API. It touches PostgreSQL only: what Temporal is to do goes through the outbox."""
