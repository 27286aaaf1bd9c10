-- name: create_ticket$
-- The new ticket, or the one that the operation has already. (Both attempts of an operation hold the lock of its
-- effect, one after the other, so the second statement sees what the first has committed.)
WITH created AS (
    INSERT INTO tickets (tenant, operation_key, job_id, subject, body, category, urgency, language)
    VALUES (:tenant, :operation_key, :job_id, :subject, :body, :category, :urgency, :language)
    ON CONFLICT ON CONSTRAINT tickets_one_per_operation DO NOTHING
    RETURNING id
)
SELECT id FROM created
UNION ALL
SELECT id FROM tickets WHERE operation_key = :operation_key
LIMIT 1;

-- name: find_tickets
SELECT id FROM tickets WHERE operation_key = :operation_key;

-- name: close_ticket$
-- Closing a closed ticket is no error: the undo may be delivered twice.
UPDATE tickets SET state = 'closed', closed_at = coalesce(closed_at, now())
 WHERE tenant = :tenant AND id = :id
RETURNING id;

-- name: search_tickets
-- Any of the words, best match first; websearch_to_tsquery takes whatever a person types without an error.
SELECT id, subject, category, state
  FROM tickets, websearch_to_tsquery('simple', :query) AS wanted
 WHERE tenant = :tenant AND search @@ wanted
 ORDER BY ts_rank(search, wanted) DESC, id DESC LIMIT :limit;
