"""What the constraints of seen task queues refuse; part of test_constraints.py."""

_QUEUE = "INSERT INTO task_queues (name, kind, backlog, oldest_seconds, pollers) VALUES "

VIOLATIONS = {
    "task_queues_pkey": _QUEUE + "('q', 'workflow', 0, 0, 0)",
    "task_queues_kind_known": _QUEUE + "('q', 'query', 0, 0, 0)",
    "task_queues_backlog_not_negative": _QUEUE + "('q', 'activity', -1, 0, 0)",
    "task_queues_oldest_seconds_not_negative": _QUEUE + "('q', 'activity', 0, -1, 0)",
    "task_queues_pollers_not_negative": _QUEUE + "('q', 'activity', 0, 0, -1)",
}
SEED = (_QUEUE + "('q', 'workflow', 0, 0, 0)",)
