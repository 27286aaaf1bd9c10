"""The ways by which somebody is told. One file a way; what is told is in agentjobs/domain/alerts.py."""
