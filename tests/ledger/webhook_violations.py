"""What the constraints of webhooks refuse; part of test_constraints.py."""

_WEBHOOK = "INSERT INTO webhooks (id, tenant, url, types, secret, created_by) VALUES "
_DELIVERY = "INSERT INTO webhook_deliveries (id, webhook_id, type, job_id, data) VALUES "

VIOLATIONS = {
    "webhooks_pkey": f"{_WEBHOOK} ('wh', 'acme', 'u', '{{job.dead}}', 's', 'adam')",
    "webhooks_tenant_fkey": f"{_WEBHOOK} ('new', 'nobody', 'u', '{{job.dead}}', 's', 'adam')",
    "webhooks_url_length": "UPDATE webhooks SET url = ''",
    "webhooks_types_known": "UPDATE webhooks SET types = '{job.dead,job.running}'",
    "webhooks_disabled_because_known": "UPDATE webhooks SET disabled_at = now(), disabled_because = 'bored'",
    "webhooks_old_secret_has_end": "UPDATE webhooks SET old_secret = 's'",
    "webhooks_disabled_has_reason": "UPDATE webhooks SET disabled_at = now()",
    "webhook_deliveries_pkey": f"{_DELIVERY} ('msg', 'wh', 'job.dead', 'job', '{{}}')",
    "webhook_deliveries_webhook_fkey": f"{_DELIVERY} ('new', 'nothing', 'job.dead', 'job', '{{}}')",
    "webhook_deliveries_type_known": f"{_DELIVERY} ('new', 'wh', 'job.running', 'job', '{{}}')",
    "webhook_deliveries_state_known": "UPDATE webhook_deliveries SET state = 'lost', next_attempt_at = NULL",
    "webhook_deliveries_error_known": "UPDATE webhook_deliveries SET last_error = 'port 22 was open'",
    "webhook_deliveries_about_a_job": "UPDATE webhook_deliveries SET job_id = NULL",
    "webhook_deliveries_attempts_range": "UPDATE webhook_deliveries SET earlier_attempts = 1",
    "webhook_deliveries_next_exactly_when_waiting": "UPDATE webhook_deliveries SET next_attempt_at = NULL",
    "webhook_deliveries_time_exactly_when_delivered": "UPDATE webhook_deliveries SET delivered_at = now()",
}
SEED = (
    f"{_WEBHOOK} ('wh', 'acme', 'u', '{{job.dead}}', 's', 'adam')",
    f"{_DELIVERY} ('msg', 'wh', 'job.dead', 'dead', '{{}}')",
)
