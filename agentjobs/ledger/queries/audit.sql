-- name: list_audit
-- Latest first; `before` is the last row's id of the page before. Ids go up in the order in which the rows were written.
SELECT id, at, actor, action, target, note, details FROM audit_log
 WHERE tenant = :tenant AND (:actor::text IS NULL OR actor = :actor)
   AND (:action::text IS NULL OR action = :action) AND (:target::text IS NULL OR target = :target)
   AND (:before::bigint IS NULL OR id < :before::bigint)
 ORDER BY id DESC
 LIMIT :limit;
