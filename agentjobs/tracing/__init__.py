"""Traces by OpenTelemetry: one for each job, from the request to the webhook (docs/tracing.md)."""
