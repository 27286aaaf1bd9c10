-- name: create_ticket^
-- Comes back empty when the operation has its ticket already.
INSERT INTO tickets (tenant, operation_key, job_id, subject, body, category, urgency, language)
VALUES (:tenant, :operation_key, :job_id, :subject, :body, :category, :urgency, :language)
ON CONFLICT ON CONSTRAINT tickets_one_per_operation DO NOTHING
RETURNING id;

-- name: find_ticket^
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
