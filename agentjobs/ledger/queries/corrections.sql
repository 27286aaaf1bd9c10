-- name: lock_correctable^
-- The job of a letter, before it is changed. What follows in the transaction sees all that was written under this lock.
SELECT dead_letters.state, jobs.budget_tokens, jobs.budget_usd, jobs.budget_steps,
       jobs.tokens_in + jobs.tokens_out + jobs.tokens_reserved AS tokens_used,
       jobs.usd + jobs.usd_reserved AS usd_used,
       jobs.cancel_requested_at IS NOT NULL
       OR EXISTS (SELECT FROM effects WHERE effects.job_id = jobs.id AND effects.kind = 'undo') AS being_undone
  FROM jobs JOIN dead_letters ON dead_letters.id = jobs.id
 WHERE jobs.id = :id AND jobs.tenant = :tenant
   FOR NO KEY UPDATE OF jobs;

-- name: correct_input$
-- The job's input from now on, and what it was. Returns the number of this change.
WITH kept AS (
    INSERT INTO input_changes (job_id, generation, old_input, changed_by, note)
    SELECT id, generation, input, :actor, :note FROM jobs WHERE id = :id
    RETURNING id, job_id, generation
), corrected AS (
    UPDATE jobs SET input = jsonb_build_object('text', :text::text), updated_at = now()
      FROM kept WHERE jobs.id = kept.job_id
    RETURNING jobs.tenant
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target, note, details)
    SELECT tenant, :actor, 'correct_input', job_id, :note,
           jsonb_build_object('generation', generation, 'change', kept.id)
      FROM corrected CROSS JOIN kept
)
SELECT id FROM kept;

-- name: last_step_that_stays$
-- Of the last tool call that is done, or may be (0: none). It and what led to it stay as they are. By `again` a person
-- says of calls in doubt that they are to be had anew.
SELECT coalesce(max(substring(step FROM '^step-([0-9]+)[.]')::integer), 0)
  FROM effects
 WHERE job_id = :id AND kind = 'tool' AND effect_class <> 'read_only'
   AND (state IN ('completed', 'undone')
        OR (state = 'begun' AND effect_class <> 'transactional' AND NOT :again::boolean));

-- name: set_replies_aside!
-- Model replies and findings after that step, the plan and the answer are made of the old input. They are kept (they were
-- paid for), under names that no step asks for.
UPDATE effects SET key = key || :suffix::text, step = step || :suffix::text
 WHERE job_id = :id AND kind <> 'undo' AND (kind = 'model' OR effect_class = 'read_only') AND position('~' IN step) = 0
   AND coalesce(substring(step FROM '^step-([0-9]+)[.]')::integer > :last_step::integer, true);

-- name: open_calls!
-- Tool calls after that step certainly did not happen (or are to be had anew). The next begin may choose other arguments;
-- the destination knows it under another key, so nothing that is still on its way can answer for it.
UPDATE effects
   SET state = 'released', in_doubt = false, fingerprint = '', generation = generation + 1
 WHERE job_id = :id AND kind = 'tool' AND effect_class <> 'read_only' AND state IN ('begun', 'released')
   AND substring(step FROM '^step-([0-9]+)[.]')::integer > :last_step::integer;

-- name: set_attempts_aside!
-- An attempt that reports late must not answer for the step that is now made of another input.
UPDATE attempts SET effect_key = effect_key || :suffix::text
 WHERE job_id = :id AND position('~' IN effect_key) = 0
   AND NOT EXISTS (SELECT FROM effects WHERE effects.key = attempts.effect_key AND effects.fingerprint <> '');

-- name: raise_budget!
-- What is not named stays. On record with what it was before.
WITH before AS (
    SELECT id, tenant, budget_tokens, budget_usd, budget_steps FROM jobs WHERE id = :id
), raised AS (
    UPDATE jobs
       SET budget_tokens = coalesce(:tokens::bigint, jobs.budget_tokens),
           budget_usd = coalesce(:usd::numeric, jobs.budget_usd),
           budget_steps = coalesce(:steps::integer, jobs.budget_steps), updated_at = now()
      FROM before WHERE jobs.id = before.id
    RETURNING jobs.id, jobs.budget_tokens, jobs.budget_usd, jobs.budget_steps
)
INSERT INTO audit_log (tenant, actor, action, target, note, details)
SELECT before.tenant, :actor, 'raise_job_budget', before.id, :note,
       jsonb_build_object(
           'before', jsonb_build_object('tokens', before.budget_tokens, 'usd', before.budget_usd::text,
                                        'steps', before.budget_steps),
           'after', jsonb_build_object('tokens', raised.budget_tokens, 'usd', raised.budget_usd::text,
                                       'steps', raised.budget_steps))
  FROM before JOIN raised ON raised.id = before.id;

-- name: input_corrected$
-- Whether the job of this generation goes on with another input than it died with.
SELECT EXISTS (SELECT FROM input_changes WHERE job_id = :id AND generation = :generation);

-- name: input_changes_of_letter
SELECT input_changes.generation, old_input ->> 'text' AS old_text, changed_by, changed_at, input_changes.note
  FROM dead_letters JOIN input_changes ON input_changes.job_id = dead_letters.id
 WHERE dead_letters.id = :id AND dead_letters.tenant = :tenant
 ORDER BY input_changes.id;
