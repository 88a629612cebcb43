-- Who may see and do what in the panel and over HTTP, and what they did.
--
-- user        who may log in, as what; whatever ends their logins raises the epoch
-- login       one browser that is logged in, by the digest of its cookie's secret
-- link        a login link that works once, by the digest of its secret
-- login_try   how often logins were tried lately, by address and by name, by known browsers and by logins
-- browser     where somebody has logged in by a password, by the digest of its cookie's secret
-- token       what a program sends instead of a password, by its digest
-- audit       what was done, and what was refused: rows that are added and never changed
-- audit_head  the end of their chain: its row lock is what gives each row its place
--
-- No secret is in any of these tables: digests of secrets that chance made, and argon2id hashes of
-- passwords.

CREATE TABLE testigo.user (
    name           text PRIMARY KEY,
    role           text NOT NULL CHECK (role IN ('viewer', 'operator', 'reviewer', 'admin')),
    epoch          integer NOT NULL DEFAULT 1,
    password_hash  text,
    created_at     timestamptz NOT NULL,
    changed_at     timestamptz NOT NULL,
    disabled_at    timestamptz
);

COMMENT ON COLUMN testigo.user.epoch IS
    'Raised by each change of password or role, and by disabling: a login of an older epoch has ended.';

CREATE TABLE testigo.login (
    id          uuid PRIMARY KEY,
    digest      text NOT NULL UNIQUE,
    name        text NOT NULL,
    via         text NOT NULL CHECK (via IN ('login', 'link')),
    epoch       integer NOT NULL,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    seen_at     timestamptz NOT NULL
);

CREATE INDEX login_name ON testigo.login (name);
CREATE INDEX login_expires ON testigo.login (expires_at);

CREATE TABLE testigo.link (
    digest      text PRIMARY KEY,
    name        text NOT NULL,
    epoch       integer NOT NULL,
    expires_at  timestamptz NOT NULL,
    login_id    uuid
);

COMMENT ON COLUMN testigo.link.login_id IS
    'The login that it was used for; NULL while it can still be used.';

CREATE INDEX link_expires ON testigo.link (expires_at);

-- Names are kept as digests: now and then somebody types a password where a name belongs.
CREATE TABLE testigo.login_try (
    scope    text NOT NULL CHECK (scope IN ('address', 'name', 'browser', 'login')),
    value    text NOT NULL,
    tries    integer NOT NULL,
    last_at  timestamptz NOT NULL,
    next_at  timestamptz NOT NULL,
    PRIMARY KEY (scope, value)
);

CREATE INDEX login_try_last ON testigo.login_try (last_at);

CREATE TABLE testigo.browser (
    digest   text NOT NULL,
    name     text NOT NULL,
    epoch    integer NOT NULL,
    seen_at  timestamptz NOT NULL,
    PRIMARY KEY (digest, name)
);

COMMENT ON TABLE testigo.browser IS
    'Whose tries to log in are counted by themselves, so that no stranger uses them up; while the user is of this epoch.';

CREATE INDEX browser_seen ON testigo.browser (seen_at);

CREATE TABLE testigo.token (
    id          uuid PRIMARY KEY,
    digest      text NOT NULL UNIQUE,
    name        text NOT NULL UNIQUE,
    role        text NOT NULL CHECK (role IN ('viewer', 'operator', 'reviewer', 'admin')),
    actor       text NOT NULL,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    revoked_at  timestamptz,
    used_at     timestamptz
);

CREATE TABLE testigo.audit (
    n           bigint PRIMARY KEY,
    at          timestamptz NOT NULL,
    actor       text NOT NULL,
    role        text NOT NULL,
    via         text NOT NULL,
    credential  text NOT NULL,
    what        text NOT NULL,
    objects     text[] NOT NULL,
    reason      text NOT NULL,
    result      text NOT NULL CHECK (result IN ('done', 'denied', 'refused')),
    code        text,
    action      text NOT NULL,
    asked_at    timestamptz NOT NULL,
    digest      text NOT NULL,
    address     text,
    request     text,
    chain       text NOT NULL
);

COMMENT ON COLUMN testigo.audit.chain IS
    'The digest of all the rest of this row and of the chain of the row before it.';
COMMENT ON COLUMN testigo.audit.digest IS
    'What was ordered, so that the same action with another content is told from a resend.';

-- One row for an action that was done, and one for each way in which it was refused.
CREATE UNIQUE INDEX audit_once ON testigo.audit (actor, action, (coalesce(code, '')));
CREATE INDEX audit_at ON testigo.audit (at, n);

-- One row: where the chain ends, and where it begins since older rows were pruned.
CREATE TABLE testigo.audit_head (
    singleton    boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    n            bigint NOT NULL DEFAULT 0,
    at           timestamptz NOT NULL DEFAULT '-infinity',
    chain        text NOT NULL DEFAULT '',
    floor        bigint NOT NULL DEFAULT 0,
    floor_chain  text NOT NULL DEFAULT ''
) WITH (fillfactor = 50);

INSERT INTO testigo.audit_head DEFAULT VALUES;

-- A row of the audit is deleted only when it is old and the head says that the chain begins behind it.
CREATE FUNCTION testigo.refuse_audit_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.at < now() - interval '400 days'
           AND EXISTS (SELECT FROM testigo.audit_head h WHERE h.floor >= OLD.n)
        THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'the audit is added to and does not change'
        USING ERRCODE = 'TG002';
END
$$;

CREATE TRIGGER audit_is_final BEFORE UPDATE OR DELETE ON testigo.audit
    FOR EACH ROW EXECUTE FUNCTION testigo.refuse_audit_change();

CREATE TRIGGER audit_is_not_emptied BEFORE TRUNCATE ON testigo.audit
    FOR EACH STATEMENT EXECUTE FUNCTION testigo.refuse_audit_change();
