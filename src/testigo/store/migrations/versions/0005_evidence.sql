-- Evidence: what analysers found, what people decided about it, and what the gate says (spec D-05 to D-24).
--
-- project          whose source is analysed: its gate, its baseline, and how many analyses it has had
-- analysis         one look at the source: a collection of findings with a revision of its own, and its gate
-- part             one analyser's share of an analysis: the job that does it, and what came of it
-- finding          what was found, inserted once and never replaced; and what was decided about it
-- decision         every decision about a finding, in order
-- summary          how many findings of an analysis are alike in all that the gate looks at
-- occurrence       what a project knows of one fingerprint over its analyses
-- occurrence_move  when one vanished and when it was back
-- exemption        a risk that a project takes whatever analysis it is found in
-- exemption_change when that was granted, taken back or lapsed, by whom and why
-- artifact         what an analysis has besides findings: its bytes lie in the blob store, under their digest
--
-- Only an analysis's own transaction of publication inserts its findings and artifacts.

CREATE TYPE testigo.severity AS ENUM ('critical', 'high', 'medium', 'low', 'info');

CREATE TABLE testigo.project (
    name             text PRIMARY KEY,
    created_at       timestamptz NOT NULL,
    analyses         integer NOT NULL DEFAULT 0,
    moved_by         integer NOT NULL DEFAULT 0,
    baseline_id      uuid,
    policy           text NOT NULL,
    policy_revision  integer NOT NULL DEFAULT 0,
    policy_by        text,
    policy_at        timestamptz,
    policy_reason    text NOT NULL DEFAULT ''
);

COMMENT ON COLUMN testigo.project.analyses IS
    'The number of the newest analysis: they are counted from 1 in the order in which they began.';
COMMENT ON COLUMN testigo.project.moved_by IS
    'The number of the newest complete analysis: an older one that is published after it moves no occurrence.';

CREATE TABLE testigo.analysis (
    id                 uuid PRIMARY KEY,
    began_at           timestamptz NOT NULL,
    n                  integer NOT NULL,
    revision           integer NOT NULL DEFAULT 1,
    findings           integer NOT NULL DEFAULT 0,
    artifacts          integer NOT NULL DEFAULT 0,
    scanner_persisted  boolean NOT NULL DEFAULT false,
    project            text NOT NULL,
    state              text NOT NULL CHECK (state IN ('running', 'complete', 'incomplete', 'failed', 'cancelled')),
    source             text NOT NULL,
    actor              text NOT NULL,
    action             text NOT NULL,
    analysers          text[] NOT NULL,
    scope              text[],
    left_out           text,
    policy             text,
    baseline_id        uuid,
    supersedes         uuid,
    publish_job        uuid NOT NULL,
    ended_at           timestamptz,
    reason             text,
    verdict            text CHECK (verdict IN ('passed', 'failed', 'incomplete')),
    gate               text,
    evaluated_at       timestamptz
) WITH (fillfactor = 70);

COMMENT ON COLUMN testigo.analysis.revision IS
    'Raised by whatever changes what its lists and its gate say: pages of another revision are refused.';
COMMENT ON COLUMN testigo.analysis.scope IS
    'The files, and the folders with a slash at their end, that it looks at; NULL for all of the source. An analysis of a part says nothing of the rest.';
COMMENT ON COLUMN testigo.analysis.left_out IS
    'How many files of the source are not in scope, by why, as a JSON object; NULL where whoever began it does not say.';
COMMENT ON COLUMN testigo.analysis.policy IS
    'The gate that was asked for with this analysis; NULL for the project''s.';

CREATE UNIQUE INDEX analysis_of_project ON testigo.analysis (project, n);
CREATE INDEX analysis_published ON testigo.analysis (project, n) WHERE scanner_persisted;
CREATE INDEX analysis_latest ON testigo.analysis (project, n) WHERE scanner_persisted AND scope IS NULL;
CREATE UNIQUE INDEX analysis_successor ON testigo.analysis (supersedes) WHERE supersedes IS NOT NULL;
CREATE INDEX analysis_running ON testigo.analysis (id) WHERE state = 'running';

CREATE TABLE testigo.part (
    analysis_id        uuid NOT NULL,
    n                  integer NOT NULL,
    job_id             uuid NOT NULL,
    files              integer NOT NULL,
    analyser           text NOT NULL,
    analyser_version   text,
    run                uuid,
    request            text,
    result             text,
    artifact_manifest  text,
    provenance         text,
    outcome            text CHECK (outcome IN ('complete', 'incomplete', 'failed')),
    reasons            text[],
    in_scope           integer,
    skipped            integer,
    failed             integer,
    coverage           text,
    findings           integer,
    started_at         timestamptz,
    ended_at           timestamptz,
    PRIMARY KEY (analysis_id, n)
);

COMMENT ON COLUMN testigo.part.files IS
    'How many files the job was given: a result that tells of fewer is refused. Without an outcome there is no result.';

CREATE TABLE testigo.finding (
    -- what was found
    id              uuid PRIMARY KEY,
    analysis_id     uuid NOT NULL,
    collection      uuid NOT NULL,
    severity        testigo.severity NOT NULL,
    part            integer NOT NULL,
    line            integer,
    known           boolean NOT NULL DEFAULT false,
    suppressed      boolean NOT NULL,
    -- where it stands
    revision        integer NOT NULL DEFAULT 1,
    decision        text NOT NULL DEFAULT 'open',
    analyser        text COLLATE "C" NOT NULL,
    fingerprint     text COLLATE "C" NOT NULL,
    rule            text NOT NULL,
    path            text,
    document        text NOT NULL,
    reason          text,
    decided_by      text,
    decided_at      timestamptz,
    -- what an advisor thinks: it decides nothing
    advisor         text,
    advice          text,
    advice_because  text,
    advised_at      timestamptz,
    CHECK (decision IN ('open', 'needs_review', 'gate_exempt', 'accepted_risk', 'ignore', 'false_positive', 'fixed')),
    CHECK (advice IN ('open', 'needs_review', 'gate_exempt', 'accepted_risk', 'ignore', 'false_positive', 'fixed')),
    UNIQUE (analysis_id, analyser, fingerprint)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.1);

COMMENT ON COLUMN testigo.finding.document IS
    'Its canonical form: the exact RFC 8785 text (spec P-06). Other columns repeat what is asked for.';
COMMENT ON COLUMN testigo.finding.collection IS
    'The same as analysis_id, for the lists alone: a lookup by fingerprint and a list then have one index each, and none that bad statistics could take for it.';
COMMENT ON COLUMN testigo.finding.known IS
    'Whether the baseline of the analysis had it, and accepted it, when it was published.';

CREATE INDEX finding_listed ON testigo.finding (collection, severity, id);

CREATE TABLE testigo.decision (
    finding_id   uuid NOT NULL,
    revision     integer NOT NULL,
    decision     text NOT NULL,
    reason       text NOT NULL,
    actor        text NOT NULL,
    action       text NOT NULL,
    at           timestamptz NOT NULL,
    PRIMARY KEY (finding_id, revision)
);

CREATE TABLE testigo.summary (
    analysis_id  uuid NOT NULL,
    analyser     text NOT NULL,
    severity     testigo.severity NOT NULL,
    decision     text NOT NULL,
    suppressed   boolean NOT NULL,
    known        boolean NOT NULL,
    findings     integer NOT NULL CHECK (findings >= 0),
    PRIMARY KEY (analysis_id, analyser, severity, decision, suppressed, known)
) WITH (fillfactor = 70);

CREATE TABLE testigo.occurrence (
    project      text COLLATE "C" NOT NULL,
    analyser     text COLLATE "C" NOT NULL,
    fingerprint  text COLLATE "C" NOT NULL,
    presence     text NOT NULL CHECK (presence IN ('present', 'absent', 'returned')),
    first_n      integer NOT NULL,
    moved_n      integer NOT NULL,
    path         text,
    PRIMARY KEY (project, analyser, fingerprint)
) WITH (fillfactor = 90);

COMMENT ON COLUMN testigo.occurrence.first_n IS
    'The number of the analysis that had it first; moved_n is that of the one which last changed what is known.';
COMMENT ON COLUMN testigo.occurrence.path IS
    'Where it was last reported: an analysis of a part of the source moves what lies in that part.';

CREATE TABLE testigo.occurrence_move (
    project      text COLLATE "C" NOT NULL,
    analyser     text COLLATE "C" NOT NULL,
    fingerprint  text COLLATE "C" NOT NULL,
    n            integer NOT NULL,
    happened     text NOT NULL CHECK (happened IN ('vanished', 'returned')),
    at           timestamptz NOT NULL,
    PRIMARY KEY (project, analyser, fingerprint, n)
);

CREATE TABLE testigo.exemption (
    project      text COLLATE "C" NOT NULL,
    analyser     text COLLATE "C" NOT NULL,
    fingerprint  text COLLATE "C" NOT NULL,
    revision     integer NOT NULL,
    granted_at   timestamptz NOT NULL,
    expires_at   timestamptz,
    ended_at     timestamptz,
    ended        text CHECK (ended IN ('revoked', 'lapsed')),
    reason       text NOT NULL,
    reviewer     text NOT NULL,
    PRIMARY KEY (project, analyser, fingerprint)
) WITH (fillfactor = 70);

-- Those that may be in force: what the gate asks for.
CREATE INDEX exemption_in_force ON testigo.exemption (project, analyser, fingerprint) WHERE ended IS NULL;

CREATE TABLE testigo.exemption_change (
    project      text COLLATE "C" NOT NULL,
    analyser     text COLLATE "C" NOT NULL,
    fingerprint  text COLLATE "C" NOT NULL,
    revision     integer NOT NULL,
    happened     text NOT NULL CHECK (happened IN ('granted', 'revoked', 'lapsed')),
    reason       text NOT NULL,
    actor        text NOT NULL,
    action       text NOT NULL,
    at           timestamptz NOT NULL,
    expires_at   timestamptz,
    PRIMARY KEY (project, analyser, fingerprint, revision)
);

CREATE TABLE testigo.artifact (
    id            uuid PRIMARY KEY,
    analysis_id   uuid NOT NULL,
    part          integer NOT NULL,
    bytes         bigint NOT NULL,
    name          text NOT NULL,
    media_type    text NOT NULL,
    digest        text NOT NULL,
    raw_digest    text NOT NULL,
    attestation   text NOT NULL,
    published_at  timestamptz NOT NULL
);

COMMENT ON COLUMN testigo.artifact.attestation IS
    'The digest of the signed envelope that binds raw_digest to digest; it lies in the blob store as well.';

CREATE INDEX artifact_of_analysis ON testigo.artifact (analysis_id, name, id);
