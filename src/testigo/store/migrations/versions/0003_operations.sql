-- What one person does to many jobs, frozen when it was asked for; and how the jobs are found that wait for one.
--
-- operation       a verb, a selection, who ordered it and why, and how far it has come
-- operation_item  each job of it, in the order in which they are done, and what became of it

-- What waits for a person, by its state. Every other update pays for a look at its predicate and no more.
CREATE INDEX job_stuck ON testigo.job (state, id)
    WHERE state IN ('permanent_failure', 'blocked_by_quality');

-- A message without what is different in each: paths of files, and words of four and more hexadecimal digits
-- with a decimal one among them, such as ids, dates and addresses.
CREATE FUNCTION testigo.alike(message text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT regexp_replace(regexp_replace(left(message, 200), '(?<![:/\w.~])[.~]{0,2}/[^\s''":,;)/]+/[^\s''":,;)]*', '#', 'g'),
                          '\m(0x)?(?=[0-9A-Fa-f-]*[0-9])[0-9A-Fa-f-]{4,}\M', '#', 'g')
$$;

-- What failures have in common that are of one cause: its name.
CREATE FUNCTION testigo.cause(code text, message text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT left(encode(sha256(convert_to(coalesce(code, '') || chr(10) || coalesce(testigo.alike(message), ''), 'UTF8')),
                       'hex'), 16)
$$;

-- Why a job failed for good: the code of its last failure or, where it was not a failure that ended it, the reason.
CREATE FUNCTION testigo.code_of(error text, reason text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN error IS NULL OR reason IN ('crashes', 'parent', 'start_by', 'finish_by') THEN reason
                ELSE CAST(error AS json) ->> 'code' END
$$;

-- The message beside it, as far as it tells causes apart.
CREATE FUNCTION testigo.message_of(error text, reason text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN error IS NULL OR reason IN ('crashes', 'parent', 'start_by', 'finish_by') THEN NULL
                ELSE left(CAST(error AS json) ->> 'message', 200) END
$$;

-- What failed for good by one cause. The cause is taken when a job fails, so that nobody who looks waits for it.
CREATE INDEX job_alike ON testigo.job (testigo.cause(testigo.code_of(error, reason), testigo.message_of(error, reason)), id)
    WHERE state = 'permanent_failure';

CREATE TABLE testigo.operation (
    id           uuid PRIMARY KEY,
    verb         text NOT NULL CHECK (verb IN ('cancel', 'retry', 'unblock', 'forget')),
    selection    text NOT NULL,
    reason       text NOT NULL,
    actor        text NOT NULL,
    action       text NOT NULL,
    began_at     timestamptz NOT NULL,
    advanced_at  timestamptz NOT NULL,
    next_at      timestamptz NOT NULL,
    failures     integer NOT NULL DEFAULT 0,
    hindrance    text,
    ended_at     timestamptz,
    stopped_by   text,
    state        text NOT NULL CHECK (state IN ('running', 'done', 'stopped')),
    complete     boolean NOT NULL,
    total        integer NOT NULL,
    done         integer NOT NULL DEFAULT 0,
    refused      integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

COMMENT ON COLUMN testigo.operation.selection IS
    'What was asked for, as JSON, for people: the items are what it came to.';

COMMENT ON COLUMN testigo.operation.failures IS
    'Steps that failed in a row, other than by what their jobs were: the next one waits until next_at.';
COMMENT ON COLUMN testigo.operation.hindrance IS
    'What the last step failed by; or why it was stopped where nobody stopped it.';

-- Those that go on, the one that was left alone for longest first.
CREATE INDEX operation_running ON testigo.operation (next_at, id) WHERE state = 'running';

CREATE TABLE testigo.operation_item (
    operation_id  uuid NOT NULL,
    n             integer NOT NULL,
    job_id        uuid NOT NULL,
    revision      integer NOT NULL,
    outcome       text NOT NULL DEFAULT 'waiting' CHECK (outcome IN ('waiting', 'done', 'refused')),
    state         testigo.job_state,
    code          text,
    message       text,
    successor_id  uuid,
    PRIMARY KEY (operation_id, n)
) WITH (fillfactor = 85);

-- Those that somebody will want to see, among a hundred thousand that went well.
CREATE INDEX operation_item_refused ON testigo.operation_item (operation_id, n) WHERE outcome = 'refused';
