-- name: preview_redrive
-- The open letters that a filter takes, and what is known of their effects. `unsafe`: an effect in doubt that nobody can
-- look up and that may not be repeated: redriven without `again`, such a job dies of it again.
SELECT letter.id, letter.reason, letter.agent, letter.effects_in_doubt,
       ARRAY (SELECT done ->> 'name' FROM jsonb_array_elements(letter.effects_done) AS done) AS tools_done,
       EXISTS (SELECT FROM effects WHERE effects.job_id = letter.id AND effects.state = 'begun'
                AND effects.effect_class = 'unsafe') AS unsafe,
       EXISTS (SELECT FROM redrive_items WHERE redrive_items.job_id = letter.id AND claimed) AS claimed
  FROM dead_letters AS letter
 WHERE letter.tenant = :tenant AND letter.state = 'open'
   AND (:reason::text IS NULL OR letter.reason = :reason)
   AND (:agent::text IS NULL OR letter.agent = :agent)
   AND (:policy_version::text IS NULL OR letter.policy_version = :policy_version)
   AND (:died_before::timestamptz IS NULL OR letter.died_at < :died_before)
   AND (:died_after::timestamptz IS NULL OR letter.died_at >= :died_after)
   AND (:ids::text[] IS NULL OR letter.id = ANY (:ids::text[]))
 ORDER BY letter.died_at, letter.id
 LIMIT :most;

-- name: insert_redrive$
-- No id comes back when the caller's key was used before (a concurrent twin waits here for the first one's commit).
INSERT INTO redrives (id, tenant, created_by, note, filter, policy, again, canary, share, rate_per_second,
                      failure_limit, verdict_seconds, key, fingerprint, traceparent, state, letters, needs_approval)
VALUES (:id, :tenant, :created_by, :note, :filter::jsonb, :policy, :again, :canary, :share, :rate_per_second,
        :failure_limit, :verdict_seconds, :key, :fingerprint, :traceparent, 'running', 0, false)
ON CONFLICT ON CONSTRAINT redrives_one_per_key DO NOTHING
RETURNING id;

-- name: claim_letters$
-- Freezes the set of letters, and how many they are. A letter that another unfinished bulk redrive has is left out, also
-- when that one is being accepted at the same moment. Always in one order, so that two never wait for each other.
WITH chosen AS (
    SELECT letter.id, letter.generation, row_number() OVER (ORDER BY letter.died_at, letter.id) AS place
      FROM dead_letters AS letter
     WHERE letter.tenant = :tenant AND letter.state = 'open'
       AND (:reason::text IS NULL OR letter.reason = :reason)
       AND (:agent::text IS NULL OR letter.agent = :agent)
       AND (:policy_version::text IS NULL OR letter.policy_version = :policy_version)
       AND (:died_before::timestamptz IS NULL OR letter.died_at < :died_before)
       AND (:died_after::timestamptz IS NULL OR letter.died_at >= :died_after)
       AND (:ids::text[] IS NULL OR letter.id = ANY (:ids::text[]))
       AND (:again::boolean OR NOT EXISTS (
               SELECT FROM effects WHERE effects.job_id = letter.id AND effects.state = 'begun'
                  AND effects.effect_class = 'unsafe'))
       AND NOT EXISTS (SELECT FROM redrive_items WHERE redrive_items.job_id = letter.id AND claimed)
     ORDER BY letter.died_at, letter.id
     LIMIT :most
), claimed AS (
    INSERT INTO redrive_items (redrive_id, job_id, generation, place)
    SELECT :id, id, generation, place FROM chosen ORDER BY place
    ON CONFLICT (job_id) WHERE claimed DO NOTHING
    RETURNING job_id
)
SELECT count(*)::integer FROM claimed;

-- name: open_redrive!
-- Its letters are counted now: it begins, or waits for a second person. On record in both cases.
WITH opened AS (
    UPDATE redrives
       SET letters = :letters, needs_approval = :needs_approval,
           state = CASE WHEN :needs_approval THEN 'awaiting_approval' ELSE 'running' END
     WHERE id = :id
    RETURNING *
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target, note, details)
    SELECT tenant, created_by, 'bulk_redrive', id, note,
           jsonb_build_object('filter', filter, 'policy', policy, 'again', again, 'letters', letters)
      FROM opened
), queued AS (
    INSERT INTO outbox (topic, redrive_id, tenant) SELECT 'call_redrive', id, tenant FROM opened WHERE state = 'running'
    RETURNING id
)
SELECT pg_notify('agentjobs_outbox', '') FROM queued;

-- name: redrive_by_key^
SELECT * FROM redrives WHERE tenant = :tenant AND created_by = :created_by AND key = :key;

-- name: read_redrive^
SELECT * FROM redrives WHERE id = :id AND (:tenant::text IS NULL OR tenant = :tenant);

-- name: list_redrives
SELECT * FROM redrives
 WHERE tenant = :tenant AND (:state::text IS NULL OR state = :state)
   AND (:before_at::timestamptz IS NULL OR (created_at, id) < (:before_at::timestamptz, :before_id::text))
 ORDER BY created_at DESC, id DESC
 LIMIT :limit;

-- name: count_redrive^
-- What has become of its letters. Asked, and neither recovered nor dead again: its time is not over (`asked`), or it is and
-- the job runs (`no_verdict`), or its redrive never took effect (`not_taken`).
WITH items AS (
    SELECT item.asked_number, deaths.outcome_at,
           CASE WHEN item.state <> 'asked' THEN item.state
                WHEN deaths.outcome IS NOT NULL THEN deaths.outcome
                WHEN item.asked_at > now() - make_interval(secs => redrives.verdict_seconds) THEN 'asked'
                WHEN deaths.resolution IS NOT NULL THEN 'no_verdict'
                ELSE 'not_taken' END AS became,
           item.asked_number <= redrives.canary AS canary
      FROM redrives JOIN redrive_items AS item ON item.redrive_id = redrives.id
      LEFT JOIN deaths ON deaths.job_id = item.job_id AND deaths.generation = item.generation
     WHERE redrives.id = :id
), lately AS (
    SELECT became FROM items WHERE outcome_at IS NOT NULL AND became IN ('recovered', 'died_again', 'cancelled')
     ORDER BY outcome_at DESC LIMIT :window
)
SELECT (SELECT coalesce(jsonb_object_agg(became, count), '{}')
          FROM (SELECT became, count(*) FROM items GROUP BY became) AS counted) AS counts,
       (SELECT count(*) FROM items WHERE canary AND became IN ('died_again', 'not_taken'))::integer AS canary_failed,
       (SELECT count(*) FROM lately)::integer AS lately_decided,
       (SELECT count(*) FROM lately WHERE became = 'died_again')::integer AS lately_failed;

-- name: skipped_of_redrive
SELECT skipped_because, count(*)::integer AS count FROM redrive_items
 WHERE redrive_id = :id AND state = 'skipped' GROUP BY skipped_because ORDER BY skipped_because;

-- name: looked_at_redrive!
UPDATE redrives SET looked_at = now() WHERE id = :id AND state NOT IN ('stopped', 'cancelled', 'completed');

-- name: next_redrive_item^
SELECT job_id, generation FROM redrive_items WHERE redrive_id = :id AND state = 'waiting' ORDER BY place LIMIT 1;

-- name: claim_redrive_item^
-- Whether the word may be given on this letter now. The job is locked already, then the bulk redrive: who pauses, stops or
-- cancels it waits until this letter is done, and after that none is touched.
WITH redrive AS MATERIALIZED (
    SELECT * FROM redrives WHERE id = :id AND state = 'running' AND asked < :up_to FOR NO KEY UPDATE
), item AS MATERIALIZED (
    SELECT redrive_items.* FROM redrive JOIN redrive_items ON redrive_items.redrive_id = redrive.id
     WHERE redrive_items.job_id = :job_id AND redrive_items.state = 'waiting'
       FOR NO KEY UPDATE OF redrive_items
)
SELECT redrive.tenant, redrive.created_by, redrive.note, redrive.policy, redrive.again, redrive.traceparent,
       CASE WHEN letter.id IS NULL THEN 'gone'
            WHEN letter.generation <> item.generation THEN 'died_again_meanwhile'
            WHEN letter.state <> 'open' THEN letter.state
            WHEN NOT redrive.again AND EXISTS (
                     SELECT FROM effects WHERE effects.job_id = item.job_id AND effects.state = 'begun'
                        AND effects.effect_class = 'unsafe') THEN 'in_doubt' END AS not_open
  FROM redrive CROSS JOIN item LEFT JOIN dead_letters AS letter ON letter.id = item.job_id;

-- name: mark_item_asked!
WITH counted AS (
    UPDATE redrives SET asked = asked + 1 WHERE id = :id RETURNING asked
)
UPDATE redrive_items SET state = 'asked', asked_at = now(), asked_number = counted.asked
  FROM counted WHERE redrive_id = :id AND job_id = :job_id;

-- name: mark_item_skipped!
UPDATE redrive_items SET state = 'skipped', skipped_because = :because WHERE redrive_id = :id AND job_id = :job_id;

-- name: end_redrive$
-- By itself. Its letters are free for another one. Nothing happens when a person was first.
WITH ended AS (
    UPDATE redrives SET state = :state, stopped_because = :because, finished_at = now()
     WHERE id = :id AND state = 'running'
    RETURNING *
), freed AS (
    UPDATE redrive_items SET claimed = false FROM ended WHERE redrive_items.redrive_id = ended.id
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target, note, details)
    SELECT tenant, 'agentjobs', 'bulk_redrive_' || state, id, NULL,
           jsonb_strip_nulls(jsonb_build_object('because', stopped_because))
      FROM ended
)
SELECT EXISTS (SELECT FROM ended);

-- name: change_redrive^
-- A person's word: pause, resume, cancel, approve. No row for a redrive that the tenant has not; `changed` is false when the
-- word does not fit the state, or (`same_person`) when the creator approves.
WITH found AS MATERIALIZED (
    SELECT id, state, created_by FROM redrives WHERE id = :id AND tenant = :tenant FOR NO KEY UPDATE
), changed AS (
    UPDATE redrives
       SET state = :to_state,
           finished_at = CASE WHEN :to_state = 'cancelled' THEN now() END,
           approved_by = CASE WHEN :word = 'approve' THEN :actor ELSE approved_by END,
           approved_at = CASE WHEN :word = 'approve' THEN now() ELSE approved_at END,
           approval_note = CASE WHEN :word = 'approve' THEN :note ELSE approval_note END
      FROM found
     WHERE redrives.id = found.id AND found.state = ANY (:from_states::text[])
       AND (:word::text <> 'approve' OR found.created_by <> :actor)
    RETURNING redrives.*
), freed AS (
    UPDATE redrive_items SET claimed = false
      FROM changed WHERE redrive_items.redrive_id = changed.id AND changed.state = 'cancelled'
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target, note)
    SELECT tenant, :actor, 'bulk_redrive_' || :word, id, :note FROM changed
), queued AS (
    INSERT INTO outbox (topic, redrive_id, tenant) SELECT 'call_redrive', id, tenant FROM changed
    RETURNING id
)
SELECT found.state AS state_before, changed.id IS NOT NULL AS changed,
       :word = 'approve' AND found.created_by = :actor AS same_person,
       (SELECT pg_notify('agentjobs_outbox', '') FROM queued)
  FROM found LEFT JOIN changed ON true;

-- name: claim_redrive_calls
-- Of several words on one bulk redrive all are taken, and one call is enough.
SELECT id, redrive_id, tenant, attempts FROM outbox
 WHERE topic = 'call_redrive' AND available_at <= now()
 ORDER BY id LIMIT :batch
   FOR UPDATE SKIP LOCKED;

-- name: call_redrives_again$
-- Running ones at which nobody has looked for long: their workflow is gone. How many.
WITH called AS (
    INSERT INTO outbox (topic, redrive_id, tenant)
    SELECT 'call_redrive', id, tenant FROM redrives
     WHERE state = 'running'
       AND coalesce(looked_at, approved_at, created_at) < now() - make_interval(secs => :silent_seconds::double precision)
       AND NOT EXISTS (SELECT FROM outbox WHERE outbox.redrive_id = redrives.id)
    RETURNING id
)
SELECT count(*)::integer FROM called;
