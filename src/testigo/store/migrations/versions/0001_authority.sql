-- The authority's tables (spec P-01 to P-32; decision records 0001, 0002, 0008, 0010).
--
-- job         one row per job: what was asked, the contract, where it stands, who owns it
-- submission  which job a client's key names; lives as long as the job or its tombstone
-- admission   jobs submitted inside a caller's transaction that no stream has told of yet
-- edge        a child waits for a parent; a row per pair, closed when the parent ends
-- lapse, successor           dates and successors of the few jobs that have them
-- pause, queue               what is paused, and what was set for a queue
-- session     a worker's term of office: one narrow row, the only one that a heartbeat writes
-- stream      the head of each ordered stream of events; its row lock is what makes it gap-free
-- event       the accepted facts, numbered 1, 2, 3 … within their stream
-- receipt, session_receipt   what a command answered, so that it can be asked again
-- progress, job_log          what a run tells of itself while it runs; nothing hangs on it
-- late        results that came without authority: evidence, changing nothing
-- tombstone   what was redacted or pruned, by whom and why
-- prune_walk  where the one walk over all jobs, which pruning makes, goes on
--
-- Nothing here needs a session's state, a listener or an advisory lock to be correct, no foreign
-- key crosses aggregates, and no statement of the engine creates or alters a table at run time.

CREATE TYPE testigo.job_state AS ENUM (
    'created', 'inputs_pending', 'ready', 'leased', 'running', 'checkpointed', 'retry_waiting',
    'blocked_by_quality', 'cancelling',
    'succeeded', 'succeeded_degraded', 'permanent_failure', 'cancelled', 'superseded'
);

CREATE TABLE testigo.job (
    -- Columns of a fixed width that are never NULL come first: PostgreSQL finds those at once, and
    -- the indexes' predicates and the fences read them for every row.
    id               uuid PRIMARY KEY,
    created_at       timestamptz NOT NULL,
    ready_at         timestamptz NOT NULL,
    timeout_seconds  double precision NOT NULL,
    waited_seconds   double precision NOT NULL DEFAULT 0,
    cost             double precision NOT NULL DEFAULT 0,
    state            testigo.job_state NOT NULL,
    priority         integer NOT NULL,
    revision         integer NOT NULL DEFAULT 1,
    epoch            integer NOT NULL DEFAULT 0,
    failures         integer NOT NULL DEFAULT 0,
    losses           integer NOT NULL DEFAULT 0,
    releases         integer NOT NULL DEFAULT 0,
    attempts         integer NOT NULL,
    crash_limit      integer NOT NULL,
    checkpoint_n     integer NOT NULL DEFAULT 0,
    is_parent        boolean NOT NULL DEFAULT false,
    full_events      boolean NOT NULL DEFAULT false,
    -- what was asked
    queue            text NOT NULL,
    kind             text NOT NULL,
    stream           text NOT NULL,
    client           text NOT NULL,
    contract         text NOT NULL,
    payload          text NOT NULL,
    key              text,
    tags             text[],
    start_by         timestamptz,
    finish_by        timestamptz,
    supersedes       uuid,
    trace            text,
    -- who owns it, and since when; the beat is the session's
    lease_id         uuid,
    session_id       uuid,
    grant_n          bigint,
    leased_at        timestamptz,
    started_at       timestamptz,
    -- where it stands, and what it made
    due_at           timestamptz,
    finished_at      timestamptz,
    reason           text,
    checkpoint       text,
    output           text,
    limitations      text[],
    error            text
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.2);

COMMENT ON COLUMN testigo.job.payload IS
    'The exact text that testigo encoded: jsonb would rewrite 1e2, -0.0 and duplicate keys (spec P-06).';
COMMENT ON COLUMN testigo.job.contract IS
    'What only a retry reads, as JSON: the backoff and the limits on delay and cost.';

-- Every index on this table is paid for by every claim and settle: there are these four, and what
-- concerns few jobs (dates, successors) has narrow tables of its own.

-- Only what may be claimed now is in here (spec P-13), in the order of claiming (spec P-14).
CREATE INDEX job_claimable ON testigo.job (queue, priority, ready_at, id)
    WHERE state IN ('ready', 'checkpointed');

-- What waits for its time, in the order of its promotion.
CREATE INDEX job_due ON testigo.job (queue, due_at, priority, id)
    WHERE state IN ('created', 'retry_waiting') AND due_at IS NOT NULL;

-- What a session holds, for taking back and for expiry.
CREATE INDEX job_leased ON testigo.job (session_id, grant_n)
    WHERE lease_id IS NOT NULL;

-- When a job that nobody started must be ended: its start_by or finish_by, whichever is first.
CREATE TABLE testigo.lapse (
    job_id  uuid PRIMARY KEY,
    at      timestamptz NOT NULL
);

CREATE INDEX lapse_at ON testigo.lapse (at);

-- A job has at most one successor; the old row itself does not change (spec A-06).
CREATE TABLE testigo.successor (
    job_id        uuid PRIMARY KEY,
    successor_id  uuid NOT NULL
);

CREATE TABLE testigo.submission (
    client          text NOT NULL,
    kind            text NOT NULL,
    key             text NOT NULL,
    job_id          uuid NOT NULL,
    request_digest  text NOT NULL,
    PRIMARY KEY (client, kind, key)
);

CREATE TABLE testigo.admission (
    job_id    uuid PRIMARY KEY,
    actor     text NOT NULL,
    action    text NOT NULL,
    run_at    timestamptz,
    parents   uuid[] NOT NULL,
    policy    text NOT NULL,
    event_id  uuid NOT NULL
);

CREATE TABLE testigo.edge (
    parent   uuid NOT NULL,
    child    uuid NOT NULL,
    policy   text NOT NULL,
    closed   text,
    PRIMARY KEY (parent, child)
);

COMMENT ON COLUMN testigo.edge.closed IS
    'NULL while the child waits for this parent; else the state in which the parent ended.';

CREATE INDEX edge_child ON testigo.edge (child);

-- What is paused, and nothing else: a queue or a kind that has no row here runs.
CREATE TABLE testigo.pause (
    scope  text NOT NULL CHECK (scope IN ('queue', 'kind')),
    name   text NOT NULL,
    actor  text NOT NULL,
    note   text NOT NULL,
    at     timestamptz NOT NULL,
    PRIMARY KEY (scope, name)
);

-- What was set for a queue; a queue comes to be by its first job and needs no row here.
CREATE TABLE testigo.queue (
    name     text PRIMARY KEY,
    events   text NOT NULL DEFAULT 'default' CHECK (events IN ('default', 'full')),
    stripes  integer NOT NULL DEFAULT 1 CHECK (stripes BETWEEN 1 AND 64)
);

-- How many sessions an agent's name has had: the next one's epoch.
CREATE TABLE testigo.agent (
    name   text PRIMARY KEY,
    epoch  integer NOT NULL
);

CREATE TABLE testigo.session (
    id            uuid PRIMARY KEY,
    agent         text NOT NULL,
    epoch         integer NOT NULL,
    beat          bigint NOT NULL DEFAULT 0,
    low_water     bigint NOT NULL DEFAULT 0,
    term_seconds  double precision NOT NULL,
    exclusive     boolean NOT NULL,
    state         text NOT NULL DEFAULT 'open'
                  CHECK (state IN ('open', 'draining', 'closed', 'replaced', 'dead'))
) WITH (fillfactor = 50);

CREATE UNIQUE INDEX session_live ON testigo.session (agent) WHERE state IN ('open', 'draining');

-- What a session says of itself: written when it opens and when it closes, never by a beat.
CREATE TABLE testigo.session_profile (
    session_id      uuid PRIMARY KEY,
    queues          text[] NOT NULL,
    kinds           text[] NOT NULL,
    host            text NOT NULL,
    processes       text NOT NULL,
    opened_at       timestamptz NOT NULL,
    closed_at       timestamptz,
    receipts_below  bigint NOT NULL DEFAULT 0
);

COMMENT ON COLUMN testigo.session_profile.receipts_below IS
    'Receipts of commands below it may be deleted, once no statement runs that began before this was written.';

CREATE TABLE testigo.stream (
    name         text PRIMARY KEY,
    head         bigint NOT NULL,
    floor        bigint NOT NULL DEFAULT 0,
    appended_at  timestamptz NOT NULL
) WITH (fillfactor = 50);

COMMENT ON COLUMN testigo.stream.floor IS
    'Events at or below it were pruned; a cursor below it is refused with CURSOR_TOO_OLD (spec P-27).';

CREATE TABLE testigo.event (
    stream    text NOT NULL,
    sequence  bigint NOT NULL,
    id        uuid NOT NULL,
    type      text NOT NULL,
    subject   uuid NOT NULL,
    at        timestamptz NOT NULL,
    revision  integer NOT NULL,
    actor     text NOT NULL,
    action    text NOT NULL,
    data      text NOT NULL,
    PRIMARY KEY (stream, sequence)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.5);

CREATE INDEX event_subject ON testigo.event (subject);

CREATE TABLE testigo.receipt (
    actor       text NOT NULL,
    action      text NOT NULL,
    digest      text NOT NULL,
    answer      text NOT NULL,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (actor, action)
);

CREATE INDEX receipt_created ON testigo.receipt (created_at);

CREATE TABLE testigo.session_receipt (
    session_id  uuid NOT NULL,
    n           bigint NOT NULL,
    ordinal     integer NOT NULL,
    digest      text NOT NULL,
    answer      text NOT NULL,
    PRIMARY KEY (session_id, n, ordinal)
);

-- How far the last run that told of it has come: one row per job, which each report replaces. Besides, how
-- much of that run's log is kept: a report counts from there.
CREATE TABLE testigo.progress (
    job_id       uuid PRIMARY KEY,
    n            bigint NOT NULL,
    log_n        bigint NOT NULL,
    epoch        integer NOT NULL,
    log_lines    integer NOT NULL,
    log_bytes    integer NOT NULL,
    log_dropped  integer NOT NULL,
    done         double precision,
    total        double precision,
    at           timestamptz,
    first_done   double precision,
    first_at     timestamptz,
    note         text
) WITH (fillfactor = 50);

COMMENT ON COLUMN testigo.progress.n IS
    'The number of the last progress that is told here; log_n is the same for lines. A resend has none above it.';

CREATE TABLE testigo.job_log (
    job_id  uuid NOT NULL,
    epoch   integer NOT NULL,
    n       bigint NOT NULL,
    at      timestamptz NOT NULL,
    level   text NOT NULL,
    text    text NOT NULL,
    PRIMARY KEY (job_id, epoch, n)
);

CREATE TABLE testigo.late (
    id          uuid PRIMARY KEY,
    job_id      uuid NOT NULL,
    epoch       integer NOT NULL,
    lease_id    uuid NOT NULL,
    session_id  uuid NOT NULL,
    outcome     text NOT NULL,
    document    text,
    note        text,
    found_state testigo.job_state NOT NULL,
    at          timestamptz NOT NULL
);

CREATE INDEX late_job ON testigo.late (job_id);

CREATE TABLE testigo.tombstone (
    id      uuid PRIMARY KEY,
    job_id  uuid NOT NULL,
    what    text NOT NULL CHECK (what IN ('redacted', 'pruned')),
    state   testigo.job_state NOT NULL,
    digest  text NOT NULL,
    actor   text NOT NULL,
    action  text NOT NULL,
    note    text NOT NULL,
    at      timestamptz NOT NULL,
    -- the key that named the job when it was pruned; it is forgotten with the tombstone (spec P-04)
    client  text,
    kind    text,
    key     text
);

CREATE INDEX tombstone_job ON testigo.tombstone (job_id);

-- One row: what has ended is pruned by walking all jobs by id, from the oldest, over and over.
CREATE TABLE testigo.prune_walk (
    singleton  boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    place      uuid,
    began_at   timestamptz NOT NULL DEFAULT '-infinity'
);

COMMENT ON COLUMN testigo.prune_walk.place IS
    'The last job that the pass under way has looked at; NULL when the last pass has come to its end.';

INSERT INTO testigo.prune_walk DEFAULT VALUES;

-- One row: what the installation is, and what was pruned of it.
CREATE TABLE testigo.installation (
    singleton      boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    id             uuid NOT NULL DEFAULT gen_random_uuid(),
    receipt_floor  timestamptz NOT NULL DEFAULT '-infinity'
);

COMMENT ON COLUMN testigo.installation.receipt_floor IS
    'The newest creation time of a pruned receipt: actions at or below it are refused, by this and not by a clock (spec P-04).';

INSERT INTO testigo.installation DEFAULT VALUES;

-- A UUIDv7 for the few events whose ids are not made by the caller (leased and started, spec P-27).
CREATE FUNCTION testigo.new_event_id() RETURNS uuid
LANGUAGE sql VOLATILE AS $$
    SELECT CAST(lpad(to_hex(CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)), 12, '0')
                || '7' || substr(r, 14) AS uuid)
    FROM (SELECT replace(CAST(gen_random_uuid() AS text), '-', '') AS r) AS random
$$;

-- What has ended is refused every change, except a redaction whose tombstone this very
-- transaction wrote; it is deleted only behind a tombstone (spec A-06, P-26).
CREATE FUNCTION testigo.refuse_terminal_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE'
       AND (NEW.id, NEW.state, NEW.revision - 1, NEW.epoch) = (OLD.id, OLD.state, OLD.revision, OLD.epoch)
       AND EXISTS (SELECT FROM testigo.tombstone t
                   WHERE t.job_id = OLD.id AND t.what = 'redacted'
                     AND t.at = transaction_timestamp())
    THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'DELETE'
       AND EXISTS (SELECT FROM testigo.tombstone t WHERE t.job_id = OLD.id AND t.what = 'pruned'
                     AND t.at = transaction_timestamp())
    THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'job % is % and does not change', OLD.id, OLD.state
        USING ERRCODE = 'TG001';
END
$$;

-- After the update, which is undone with it: before it, each row would be locked a second time.
CREATE TRIGGER terminal_is_final AFTER UPDATE ON testigo.job
    FOR EACH ROW WHEN (OLD.state IN ('succeeded', 'succeeded_degraded', 'permanent_failure', 'cancelled', 'superseded'))
    EXECUTE FUNCTION testigo.refuse_terminal_change();

CREATE TRIGGER deleted_behind_a_tombstone BEFORE DELETE ON testigo.job
    FOR EACH ROW EXECUTE FUNCTION testigo.refuse_terminal_change();
