-- name: lock_job!
-- Before a statement that also reads what others write under this lock: it must not begin before they are done.
SELECT FROM jobs WHERE id = :id FOR NO KEY UPDATE;

-- name: bury^
-- One transaction: job state, dead letter, event, and the outbox row by which the desk learns of it. The
-- generation makes a repeated call harmless: it has gone up already.
WITH found AS MATERIALIZED (
    SELECT id, state, generation FROM jobs WHERE id = :job_id FOR NO KEY UPDATE
), died AS (
    UPDATE jobs
       SET state = 'dead', generation = found.generation + 1, failure = :failure::jsonb, next_attempt_at = NULL,
           step = coalesce(:failure::jsonb ->> 'step', jobs.step), event_seq = event_seq + 1, updated_at = now()
      FROM found
     WHERE jobs.id = found.id AND found.generation = :generation
       AND found.state IN ('pending', 'running', 'retry_wait', 'waiting_approval', 'dead')
    RETURNING jobs.*
), crashed AS (
    UPDATE attempts SET outcome = 'crashed', finished_at = now()
      FROM died WHERE attempts.job_id = died.id AND attempts.outcome = 'running'
), tried AS (
    SELECT count(*)::integer AS attempts FROM attempts WHERE job_id = :job_id
), outside AS (
    SELECT coalesce(jsonb_agg(jsonb_build_object('step', step, 'name', name, 'key', key, 'receipt', result)
                              ORDER BY begun_at) FILTER (WHERE state = 'completed'), '[]') AS done,
           coalesce(jsonb_agg(jsonb_build_object('step', step, 'name', name, 'key', key)
                              ORDER BY begun_at)
                    FILTER (WHERE state = 'begun' AND effect_class <> 'transactional'), '[]') AS in_doubt
      FROM effects WHERE job_id = :job_id AND effect_class <> 'read_only'
), letter AS (
    INSERT INTO dead_letters (id, tenant, generation, category, reason, message, step, agent, policy_version,
                              worker, worker_build, origin, submitted_by, review_id, attempts, effects_done,
                              effects_in_doubt)
    SELECT died.id, died.tenant, died.generation, died.failure ->> 'category', died.failure ->> 'reason',
           died.failure ->> 'message', died.failure ->> 'step', died.agent, died.policy_version,
           :worker, (SELECT build FROM workers WHERE id = :worker), died.origin, died."user",
           gen_random_uuid()::text, tried.attempts, outside.done, outside.in_doubt
      FROM died CROSS JOIN tried CROSS JOIN outside
    ON CONFLICT (id) DO UPDATE
       SET generation = excluded.generation, state = 'open', category = excluded.category,
           reason = excluded.reason, message = excluded.message, step = excluded.step,
           policy_version = excluded.policy_version, worker = excluded.worker,
           worker_build = excluded.worker_build, review_id = excluded.review_id, attempts = excluded.attempts,
           effects_done = excluded.effects_done, effects_in_doubt = excluded.effects_in_doubt,
           died_at = now(), alerted_at = NULL, resolved_at = NULL, resolved_by = NULL, note = NULL
), death AS (
    INSERT INTO deaths (job_id, generation, tenant, agent, policy_version, category, reason, step, worker,
                        worker_build)
    SELECT id, generation, tenant, agent, policy_version, failure ->> 'category', failure ->> 'reason',
           failure ->> 'step', :worker, (SELECT build FROM workers WHERE workers.id = :worker)
      FROM died
), again AS (
    UPDATE deaths SET outcome = 'died_again', outcome_at = now()
      FROM died
     WHERE deaths.job_id = died.id AND deaths.generation = died.generation - 1 AND deaths.resolution = 'redriven'
       AND deaths.outcome IS NULL
), event AS (
    INSERT INTO job_events (job_id, seq, type, data)
    SELECT id, event_seq, 'died', jsonb_build_object('reason', failure ->> 'reason', 'generation', generation)
      FROM died
), told AS (
    INSERT INTO outbox (topic, job_id, tenant, payload)
    SELECT 'job_died', id, tenant,
           jsonb_build_object('generation', generation, 'reason', failure ->> 'reason', 'agent', agent)
      FROM died
    RETURNING id
)
SELECT coalesce(died.state, found.state) AS state, coalesce(died.generation, found.generation) AS generation,
       (SELECT pg_notify('agentjobs_outbox', '') FROM told)
  FROM found LEFT JOIN died ON true;

-- name: finish^
-- A final state, once: nothing moves a final job again. The result is put together from the receipts, so it
-- says what is true of each effect, also after a cancellation. An end of another generation changes nothing: it comes
-- late, of a run that was given up, and a person may have said otherwise since. (Older runs tell none.)
WITH found AS MATERIALIZED (
    SELECT id, state, generation FROM jobs WHERE id = :job_id FOR NO KEY UPDATE
), ends AS (
    -- An undo that was tried has left an effect, or a refused attempt, or a death.
    SELECT effects.*,
           CASE WHEN state = 'completed' AND :state::text = 'succeeded' THEN 'done'
                WHEN state = 'completed' THEN 'stays'
                WHEN state = 'undone' THEN 'undone'
                WHEN state = 'begun' AND effect_class <> 'transactional' THEN 'in_doubt'
                ELSE 'not_done' END AS outcome,
           EXISTS (SELECT FROM effects AS undo WHERE undo.job_id = :job_id AND undo.step = 'undo.' || effects.step)
           OR EXISTS (SELECT FROM attempts WHERE attempts.job_id = :job_id AND attempts.step = 'undo.' || effects.step)
           OR EXISTS (SELECT FROM deaths WHERE deaths.job_id = :job_id AND deaths.step = 'undo.' || effects.step)
           AS undo_tried
      FROM effects WHERE job_id = :job_id
), summary AS (
    SELECT jsonb_build_object(
               'answer', max(result ->> 'text') FILTER (WHERE step = 'answer'),
               'plan', (jsonb_agg(result) FILTER (WHERE step = 'plan')) -> 0,
               'effects', coalesce(jsonb_agg(jsonb_build_object(
                                       'step', step, 'tool', name, 'state', state, 'receipt', result,
                                       'outcome', outcome,
                                       'because', CASE WHEN outcome <> 'stays' THEN NULL
                                                       WHEN undo_tried THEN 'undo_given_up'
                                                       ELSE 'no_undo_declared' END) ORDER BY begun_at)
                                   FILTER (WHERE kind = 'tool' AND effect_class <> 'read_only'), '[]')
           ) AS result
      FROM ends
), finished AS (
    UPDATE jobs
       SET state = :state::text, result = summary.result, next_attempt_at = NULL, failure = NULL,
           finalized_at = now(), updated_at = now(), event_seq = jobs.event_seq + 1
      FROM summary CROSS JOIN found
     WHERE jobs.id = found.id AND found.state = ANY (:from_states::text[])
       AND coalesce(found.generation = :generation::integer, true)
    RETURNING jobs.id, jobs.state, jobs.generation, jobs.event_seq
), cut_off AS (
    UPDATE attempts SET outcome = 'abandoned', finished_at = now()
      FROM finished WHERE attempts.job_id = finished.id AND attempts.outcome = 'running'
), closed AS (
    UPDATE dead_letters
       SET state = 'discarded', resolved_at = now(), resolved_by = coalesce(resolved_by, 'temporal')
      FROM finished
     WHERE dead_letters.id = finished.id AND finished.state = 'discarded'
    RETURNING dead_letters.id, dead_letters.resolved_by, dead_letters.note
), death AS (
    -- Of a discarded job its latest death is decided now; of any other one the redrive has led to this end.
    UPDATE deaths
       SET resolution = coalesce(deaths.resolution, CASE finished.state WHEN 'discarded' THEN 'discarded' END),
           resolved_at = coalesce(deaths.resolved_at, CASE finished.state WHEN 'discarded' THEN now() END),
           resolved_by = coalesce(deaths.resolved_by, (SELECT resolved_by FROM closed)),
           note = coalesce(deaths.note, (SELECT note FROM closed)),
           outcome = CASE finished.state WHEN 'succeeded' THEN 'recovered' WHEN 'cancelled' THEN 'cancelled' END,
           outcome_at = CASE WHEN finished.state IN ('succeeded', 'cancelled') THEN now() END
      FROM finished
     WHERE deaths.job_id = finished.id AND deaths.generation = finished.generation AND deaths.outcome IS NULL
), event AS (
    INSERT INTO job_events (job_id, seq, type) SELECT id, event_seq, state FROM finished
)
SELECT coalesce(finished.state, found.state) AS state FROM found LEFT JOIN finished ON true;

-- name: resume^
-- The redrive takes effect: the job runs again under a fresh deadline of the same length. `again` is a person's
-- word that effects in doubt are to be had (once more, perhaps): the only way to a second effect.
WITH found AS MATERIALIZED (
    SELECT id, state, generation, deadline_at FROM jobs WHERE id = :job_id FOR NO KEY UPDATE
), resumed AS (
    UPDATE jobs
       SET state = 'running', failure = NULL, policy_version = :policy_version, updated_at = now(),
           wait_shown_until = NULL, wait_shown_at = NULL, waits_shown = 0,
           deadline_at = now() + make_interval(secs => deadline_seconds), event_seq = event_seq + 1
      FROM found
     WHERE jobs.id = found.id AND found.state = 'dead' AND found.generation = :generation
    RETURNING jobs.*
), once_more AS (
    UPDATE effects SET state = 'released', in_doubt = false, generation = effects.generation + 1
      FROM resumed
     WHERE :again::boolean AND effects.job_id = resumed.id AND effects.state = 'begun'
       AND effects.effect_class NOT IN ('read_only', 'transactional')
), letter AS (
    UPDATE dead_letters SET state = 'redriven', resolved_at = now(),
           resolved_by = coalesce(resolved_by, 'temporal')
      FROM resumed WHERE dead_letters.id = resumed.id
    RETURNING dead_letters.resolved_by, dead_letters.note
), death AS (
    UPDATE deaths
       SET resolution = 'redriven', resolved_at = now(), resolved_by = (SELECT resolved_by FROM letter),
           note = (SELECT note FROM letter)
      FROM resumed
     WHERE deaths.job_id = resumed.id AND deaths.generation = resumed.generation AND deaths.resolution IS NULL
), event AS (
    INSERT INTO job_events (job_id, seq, type, data)
    SELECT id, event_seq, 'redriven',
           jsonb_build_object('generation', generation, 'policy_version', policy_version)
      FROM resumed
)
SELECT coalesce(resumed.state, found.state) AS state,
       coalesce(resumed.deadline_at, found.deadline_at) AS deadline_at
  FROM found LEFT JOIN resumed ON true;
