-- name: list_dead_letters
SELECT * FROM dead_letters
 WHERE tenant = :tenant AND state <> 'discarded' AND (state <> 'redriven' OR :closed::boolean)
   AND (:reason::text IS NULL OR reason = :reason) AND (:agent::text IS NULL OR agent = :agent)
   AND (:before_at::timestamptz IS NULL OR (died_at, id) < (:before_at::timestamptz, :before_id::text))
 ORDER BY died_at DESC, id DESC
 LIMIT :limit;

-- name: read_dead_letter^
SELECT dead_letters.*, jobs.erased_at
  FROM dead_letters JOIN jobs ON jobs.id = dead_letters.id
 WHERE dead_letters.id = :id AND dead_letters.tenant = :tenant;

-- name: read_letter_input$
WITH letter AS (
    SELECT dead_letters.tenant, dead_letters.id, jobs.input ->> 'text' AS text
      FROM dead_letters JOIN jobs ON jobs.id = dead_letters.id
     WHERE dead_letters.id = :id AND dead_letters.tenant = :tenant
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target)
    SELECT tenant, :actor, 'read_dead_letter', id FROM letter
)
SELECT text FROM letter;

-- name: spent_on_letter
-- What the job's attempts have cost, and hold back, by step and model: in the order in which the steps were first tried.
-- What costs nothing is left out. The model is NULL where none is known to have been asked.
SELECT attempts.step, attempts.model, count(*)::integer AS attempts,
       sum(attempts.tokens_in)::bigint AS tokens_in, sum(attempts.tokens_out)::bigint AS tokens_out,
       sum(attempts.usd) AS usd, sum(attempts.tokens_reserved)::bigint AS tokens_reserved,
       sum(attempts.usd_reserved) AS usd_reserved
  FROM dead_letters JOIN attempts ON attempts.job_id = dead_letters.id
 WHERE dead_letters.id = :id AND dead_letters.tenant = :tenant
 GROUP BY attempts.step, attempts.model
HAVING sum(attempts.tokens_in + attempts.tokens_out + attempts.tokens_reserved) > 0
    OR sum(attempts.usd + attempts.usd_reserved) > 0
 ORDER BY min(attempts.id);

-- name: attempts_of_letter
-- How the job's attempts ended, and how long it waited after them.
SELECT attempts.outcome, attempts.category, count(*)::integer AS attempts,
       coalesce(sum(attempts.wait_seconds), 0)::double precision AS wait_seconds,
       sum(attempts.tokens_in)::bigint AS tokens_in, sum(attempts.tokens_out)::bigint AS tokens_out,
       sum(attempts.usd) AS usd
  FROM dead_letters JOIN attempts ON attempts.job_id = dead_letters.id
 WHERE dead_letters.id = :id AND dead_letters.tenant = :tenant
 GROUP BY attempts.outcome, attempts.category
 ORDER BY count(*) DESC, attempts.outcome, attempts.category;

-- name: deaths_of_letter
SELECT * FROM deaths WHERE job_id = :id AND tenant = :tenant ORDER BY generation;

-- name: effects_at_end$
-- What the result of an ended job says of its effects; NULL as long as it has not ended.
SELECT jobs.result -> 'effects'
  FROM dead_letters JOIN jobs ON jobs.id = dead_letters.id
 WHERE dead_letters.id = :id AND dead_letters.tenant = :tenant AND jobs.finalized_at IS NOT NULL;

-- name: request_resolution^
-- A person's word, once: only an open letter takes one, so of fifty parallel clicks one is heard. The relay
-- carries it to the workflow. Comes back empty for a letter that does not exist.
WITH locked AS MATERIALIZED ( -- the job first, as everywhere
    SELECT id FROM jobs WHERE id = :id AND tenant = :tenant FOR NO KEY UPDATE
), before AS MATERIALIZED (
    SELECT dead_letters.id, dead_letters.state
      FROM locked JOIN dead_letters ON dead_letters.id = locked.id
       FOR NO KEY UPDATE OF dead_letters
), asked AS (
    UPDATE dead_letters SET state = :action::text || '_requested', resolved_by = :actor, note = :note
      FROM before WHERE dead_letters.id = before.id AND before.state = 'open'
    RETURNING dead_letters.*
), job AS (
    UPDATE jobs SET event_seq = event_seq + 1, updated_at = now() FROM asked WHERE jobs.id = asked.id
    RETURNING jobs.id, jobs.event_seq
), event AS (
    INSERT INTO job_events (job_id, seq, type, data)
    SELECT job.id, job.event_seq, :action::text || '_requested',
           :payload::jsonb || jsonb_build_object('generation', asked.generation)
      FROM job CROSS JOIN asked
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target, note, details)
    SELECT tenant, :actor, CASE WHEN (:payload::jsonb ->> 'again')::boolean THEN 'redrive_again' ELSE :action::text END,
           id, :note, :payload::jsonb
      FROM asked
), queued AS (
    INSERT INTO outbox (topic, job_id, tenant, payload, traceparent)
    SELECT :action::text || '_job', id, tenant, :payload::jsonb || jsonb_build_object('generation', generation),
           :traceparent::text
      FROM asked
    RETURNING id
)
SELECT before.state AS state_before, asked.id IS NOT NULL AS accepted,
       (SELECT pg_notify('agentjobs_outbox', '') FROM queued)
  FROM before LEFT JOIN asked ON true;

-- name: still_requested$
-- Whether a person's word of this generation still waits to be carried out.
SELECT EXISTS (SELECT FROM dead_letters
                WHERE id = :id AND generation = :generation AND state IN ('redrive_requested', 'discard_requested'));

-- name: reopen_letter$
-- A person's word was delivered, and the workflow that had it was ended by force: the letter takes a word again.
WITH locked AS MATERIALIZED (
    -- Not a word that was given just now: the relay may be starting the run that carries it out.
    SELECT id FROM jobs
     WHERE id = :id AND state = 'dead' AND updated_at < now() - make_interval(secs => :settled_seconds::double precision)
       FOR NO KEY UPDATE
), reopened AS (
    UPDATE dead_letters SET state = 'open', resolved_by = NULL, note = NULL
      FROM locked
     WHERE dead_letters.id = locked.id AND dead_letters.state IN ('redrive_requested', 'discard_requested')
       AND NOT EXISTS (SELECT FROM outbox WHERE outbox.job_id = locked.id
                        AND topic IN ('redrive_job', 'discard_job'))
    RETURNING dead_letters.id
)
SELECT EXISTS (SELECT FROM reopened);

-- name: tell_again$
-- Deaths of which nobody was told in a minute: the desk that had heard of them is gone. How many.
WITH told AS (
    INSERT INTO outbox (topic, job_id, tenant, payload)
    SELECT 'job_died', id, tenant,
           jsonb_build_object('generation', generation, 'reason', reason, 'agent', agent)
      FROM dead_letters
     WHERE state = 'open' AND alerted_at IS NULL AND died_at < now() - interval '1 minute'
       AND NOT EXISTS (SELECT FROM outbox WHERE outbox.job_id = dead_letters.id AND topic = 'job_died')
    RETURNING id
)
SELECT count(*) FROM told;

-- name: is_alerted$
SELECT EXISTS (SELECT FROM dead_letters
                WHERE id = :id AND (generation > :generation OR alerted_at IS NOT NULL));

-- name: mark_alerted!
UPDATE dead_letters SET alerted_at = coalesce(alerted_at, now()) WHERE id = :id AND generation = :generation;
