"""What the constraints of quotas refuse; part of test_constraints.py."""

VIOLATIONS = {
    "tenants_quota_in_flight_not_negative": "UPDATE tenants SET quota_in_flight = -1",
    "tenants_quota_per_minute_not_negative": "UPDATE tenants SET quota_per_minute = -1",
    "tenants_quota_queue_length_not_negative": "UPDATE tenants SET quota_queue_length = -1",
}
