-- name: open_admission!
INSERT INTO model_admission (model) VALUES (:model) ON CONFLICT DO NOTHING;

-- name: admit_call^
-- Locks the attempt, then the model's row; admits, or says what holds the call back and when to come again. No row: the
-- attempt is over. `ready` is false: the model has no row yet. (The clock is read after the lock was had: now() would be
-- the moment before the wait for it.)
WITH attempt AS MATERIALIZED (
    SELECT id, coalesce(model = :model::text AND admitted_at IS NOT NULL, false) AS repeated
      FROM attempts WHERE id = :attempt_id::bigint AND outcome = 'running' FOR NO KEY UPDATE
), locked AS MATERIALIZED (
    SELECT models.* FROM attempt JOIN model_admission AS models ON models.model = :model::text
     WHERE NOT attempt.repeated FOR NO KEY UPDATE OF models
), timed AS MATERIALIZED (
    SELECT locked.*, clock_timestamp() AS at,
           make_interval(secs => :request_seconds::double precision) AS request_time,
           make_interval(secs => :tokens_seconds::double precision) AS tokens_time,
           make_interval(secs => :burst_seconds::double precision) AS burst,
           make_interval(secs => call_seconds / :calls_at_once::integer) AS call_time
      FROM locked
), hold AS MATERIALIZED (
    -- Of all that holds it back what lasts longest: before that, coming again is in vain.
    SELECT holds.hold, holds.free_at
      FROM timed CROSS JOIN LATERAL (VALUES
           ('parked', parked_until),
           ('broken', open_until),
           ('probed', CASE WHEN open_until <= at AND probe_until > at AND calls_in_flight(model, probe_attempt_id) > 0
                           THEN probe_until END),
           ('calls', CASE WHEN calls_in_flight(model) >= :calls_at_once::integer
                          THEN at + greatest(call_time, make_interval(secs => :place_seconds::double precision)) END),
           ('requests', CASE WHEN request_time IS NOT NULL THEN requests_until - burst END),
           ('tokens', CASE WHEN tokens_time IS NOT NULL THEN tokens_until - burst END)
      ) AS holds (hold, free_at)
     WHERE holds.free_at > at
     ORDER BY holds.free_at DESC LIMIT 1
), placed AS MATERIALIZED (
    -- Those who are held back come again one after the other, over one round; then the places begin anew.
    SELECT hold.*,
           CASE WHEN next_place_at <= free_at + make_interval(secs => :round_seconds::double precision)
                THEN greatest(next_place_at, free_at) ELSE free_at END AS place_at,
           greatest(request_time, tokens_time, call_time,
                    make_interval(secs => :place_seconds::double precision)) AS spacing
      FROM hold CROSS JOIN timed
), held AS (
    UPDATE model_admission AS models SET next_place_at = place_at + spacing FROM placed WHERE models.model = :model::text
), admitted AS (
    UPDATE model_admission AS models
       SET requests_until = coalesce(greatest(timed.requests_until, at) + request_time, timed.requests_until),
           tokens_until = coalesce(greatest(timed.tokens_until, at) + tokens_time, timed.tokens_until),
           tokens_per_minute = :tokens_per_minute::bigint,
           probe_attempt_id = CASE WHEN timed.open_until IS NOT NULL THEN :attempt_id::bigint END,
           probe_until = CASE WHEN timed.open_until IS NOT NULL
                              THEN at + make_interval(secs => :probe_seconds::double precision) END
      FROM timed WHERE models.model = timed.model AND NOT EXISTS (SELECT FROM hold)
    RETURNING at
), marked AS (
    UPDATE attempts
       SET model = :model::text, admitted_at = at, admitted_tokens = :tokens::bigint, reported_at = NULL
      FROM admitted WHERE attempts.id = :attempt_id::bigint
)
SELECT attempt.repeated OR timed.at IS NOT NULL AS ready, placed.hold, placed.free_at,
       extract(epoch FROM placed.place_at - timed.at)::double precision AS wait_seconds,
       timed.failures, timed.last_failure
  FROM attempt LEFT JOIN timed ON true LEFT JOIN placed ON true;

-- name: report_call!
-- What came of a call, once for each attempt, however the attempt itself ended. `news`: works, fails, full or nothing.
-- Failures of calls that began before the breaker last closed are old news, and so are those of any call but the probe
-- while it is open.
WITH attempt AS MATERIALIZED (
    SELECT id, admitted_at, admitted_tokens FROM attempts
     WHERE id = :attempt_id::bigint AND model = :model::text AND admitted_at IS NOT NULL AND reported_at IS NULL
       FOR NO KEY UPDATE
), locked AS MATERIALIZED (
    SELECT models.*, attempt.id AS attempt_id, attempt.admitted_at, attempt.admitted_tokens
      FROM attempt JOIN model_admission AS models ON models.model = :model::text FOR NO KEY UPDATE OF models
), timed AS MATERIALIZED (
    SELECT locked.*, clock_timestamp() AS at, coalesce(probe_attempt_id = attempt_id, false) AS is_probe,
           :news::text = 'works' AND open_until IS NOT NULL AS closes,
           :news::text = 'fails' AND (coalesce(probe_attempt_id = attempt_id, false)
               OR (open_until IS NULL AND admitted_at >= closed_at)) AS counts
      FROM locked
), judged AS MATERIALIZED (
    SELECT timed.*, counts AND (is_probe OR failures + 1 >= :failures_to_open::integer) AS opens FROM timed
), reported AS (
    UPDATE attempts SET reported_at = at FROM judged WHERE attempts.id = judged.attempt_id
)
UPDATE model_admission AS models
   SET failures = CASE WHEN :news::text = 'works' THEN 0 ELSE judged.failures + counts::integer END,
       last_failure = CASE WHEN counts THEN :category::text ELSE judged.last_failure END,
       openings = CASE WHEN closes THEN 0 ELSE judged.openings + opens::integer END,
       open_until = CASE
           WHEN closes THEN NULL
           WHEN opens THEN at + make_interval(secs => least(
               :open_seconds::double precision * 2 ^ least(judged.openings, 30),
               :longest_open_seconds::double precision))
           ELSE judged.open_until END,
       closed_at = CASE WHEN closes THEN at ELSE judged.closed_at END,
       probe_attempt_id = CASE WHEN closes OR is_probe THEN NULL ELSE judged.probe_attempt_id END,
       probe_until = CASE WHEN closes OR is_probe THEN NULL ELSE judged.probe_until END,
       parked_until = CASE WHEN :news::text = 'full'
           THEN greatest(judged.parked_until, at + make_interval(secs => :parked_seconds::double precision))
           ELSE judged.parked_until END,
       tokens_until = coalesce(judged.tokens_until + make_interval(
           secs => (:tokens::bigint - judged.admitted_tokens) * :minute_seconds::double precision
                   / judged.tokens_per_minute), judged.tokens_until),
       call_seconds = CASE WHEN :news::text = 'works'
           THEN judged.call_seconds + (greatest(extract(epoch FROM at - judged.admitted_at)::double precision, 0)
                                       - judged.call_seconds) * :weight::double precision
           ELSE judged.call_seconds END
  FROM judged WHERE models.model = judged.model;

-- name: parked_models
-- Those that nobody should ask now, and until when: the provider asked for it, the breaker is open, or a probe is out.
WITH parked AS (
    SELECT model, greatest(parked_until, open_until, probe_until) AS until FROM model_admission
     WHERE model = ANY (:models::text[])
)
SELECT model, until FROM parked WHERE until > clock_timestamp();
