-- name: report_dead_letters$
-- One statement, so one snapshot: the parts agree to the unit while jobs die. `as_of` is read after the snapshot is taken, so
-- nothing that is counted is later.
WITH span AS MATERIALIZED (
    SELECT as_of, date_trunc(:unit::text, as_of - make_interval(hours => :window_hours::integer), 'UTC') AS since,
           CASE :unit::text WHEN 'hour' THEN interval '1 hour' ELSE interval '24 hours' END AS length
      FROM (SELECT clock_timestamp() AS as_of) AS moment
), letters AS MATERIALIZED (
    SELECT state, reason, agent, policy_version, died_at FROM dead_letters WHERE tenant = :tenant
), waiting AS MATERIALIZED (
    SELECT letters.*, span.as_of - died_at AS age
      FROM letters CROSS JOIN span WHERE state IN ('open', 'redrive_requested', 'discard_requested')
), lines AS (
    SELECT reason, agent, policy_version, count(*) AS count, min(died_at) AS oldest_at
      FROM waiting GROUP BY reason, agent, policy_version
), moves AS (
    SELECT date_trunc(:unit::text, died_at, 'UTC') AS at, 'died' AS move
      FROM deaths CROSS JOIN span WHERE tenant = :tenant AND died_at >= since
    UNION ALL
    SELECT date_trunc(:unit::text, resolved_at, 'UTC'), resolution
      FROM deaths CROSS JOIN span WHERE tenant = :tenant AND resolved_at >= since
), flow AS (
    SELECT slot AS at, count(*) FILTER (WHERE move = 'died') AS died,
           count(*) FILTER (WHERE move = 'redriven') AS redriven,
           count(*) FILTER (WHERE move = 'discarded') AS discarded
      FROM span CROSS JOIN generate_series(since, as_of, length) AS slot LEFT JOIN moves ON moves.at = slot
     GROUP BY slot
), decided AS MATERIALIZED (
    SELECT resolution, outcome, extract(epoch FROM outcome_at - died_at)::double precision AS seconds
      FROM deaths CROSS JOIN span WHERE tenant = :tenant AND resolved_at >= since
)
SELECT jsonb_build_object(
    'as_of', span.as_of, 'since', span.since, 'unit', :unit::text,
    'open_count', (SELECT count(*) FROM waiting),
    'oldest_at', (SELECT min(died_at) FROM waiting),
    'open', (SELECT coalesce(jsonb_agg(to_jsonb(lines) ORDER BY count DESC, reason, agent, policy_version), '[]')
               FROM lines),
    'by_state', (SELECT coalesce(jsonb_object_agg(state, count), '{}')
                   FROM (SELECT state, count(*) FROM letters GROUP BY state) AS counted),
    'ages', (SELECT jsonb_build_object(
                 'under_1_hour', count(*) FILTER (WHERE age < interval '1 hour'),
                 'under_1_day', count(*) FILTER (WHERE age >= interval '1 hour' AND age < interval '24 hours'),
                 'under_7_days', count(*) FILTER (WHERE age >= interval '24 hours' AND age < interval '168 hours'),
                 'older', count(*) FILTER (WHERE age >= interval '168 hours')) FROM waiting),
    'flow', (SELECT jsonb_agg(to_jsonb(flow) ORDER BY at) FROM flow),
    'outcomes', (SELECT jsonb_build_object(
                     'recovered', count(*) FILTER (WHERE outcome = 'recovered'),
                     'died_again', count(*) FILTER (WHERE outcome = 'died_again'),
                     'cancelled', count(*) FILTER (WHERE outcome = 'cancelled'),
                     'undecided', count(*) FILTER (WHERE resolution = 'redriven' AND outcome IS NULL),
                     'discarded', count(*) FILTER (WHERE resolution = 'discarded')) FROM decided),
    'recovery', (SELECT jsonb_build_object(
                     'median_seconds', percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds),
                     'p90_seconds', percentile_cont(0.9) WITHIN GROUP (ORDER BY seconds))
                   FROM decided WHERE outcome = 'recovered'))
  FROM span;
