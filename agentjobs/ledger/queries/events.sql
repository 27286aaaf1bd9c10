-- name: stand_of_job^
-- A job, up to which event that is true, and whether more is to come of itself: in one statement, so of one moment.
-- A NULL user means that the caller may see the whole tenant.
SELECT jobs.*,
       jobs.finalized_at IS NOT NULL
       OR (jobs.state = 'dead'
           AND NOT EXISTS (SELECT FROM dead_letters
                            WHERE dead_letters.id = jobs.id
                              AND dead_letters.state IN ('redrive_requested', 'discard_requested'))) AS resting
  FROM jobs WHERE id = :id AND tenant = :tenant AND (:user::text IS NULL OR "user" = :user);

-- name: news
-- What there is after each of these places. A place without a row has nothing new. `rows` cuts the whole, so the last
-- place may get less than there is.
SELECT wanted.place, jobs.event_seq, rest.resting, event.seq, event.type, event.data, event.at
  FROM unnest(:job_ids::text[], :afters::integer[]) WITH ORDINALITY AS wanted (job_id, after, place)
  JOIN jobs ON jobs.id = wanted.job_id
 CROSS JOIN LATERAL (
    SELECT jobs.finalized_at IS NOT NULL
           OR (jobs.state = 'dead'
               AND NOT EXISTS (SELECT FROM dead_letters
                                WHERE dead_letters.id = jobs.id
                                  AND dead_letters.state IN ('redrive_requested', 'discard_requested'))) AS resting
 ) AS rest
  LEFT JOIN LATERAL (
    SELECT seq, type, data, at FROM job_events
     WHERE job_events.job_id = wanted.job_id AND seq > wanted.after
     ORDER BY seq LIMIT :page
 ) AS event ON true
 WHERE jobs.event_seq > wanted.after OR rest.resting
 ORDER BY wanted.place, event.seq
 LIMIT :rows;

-- name: notice_lost_peer^
-- For the length of the session: the server notices within 30 s that its other end is gone, and lets go of its lock.
SELECT set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false),
       set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '30000', false);

-- name: hold_followed_lock!
-- For the length of the session: somebody follows jobs, so events ring (migration 0004).
SELECT pg_advisory_lock_shared(:lock_class::integer, 0);
