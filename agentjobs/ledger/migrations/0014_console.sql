-- Jobs of one state, newest first: lists with a filter read what they show, and counting stops where it is told to. (A
-- change of state writes new entries into other indexes already, so this makes none of them dearer in kind.)
CREATE INDEX jobs_by_state ON jobs (tenant, state, created_at DESC, id DESC);
