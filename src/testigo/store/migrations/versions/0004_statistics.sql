-- What happened, rolled up by time, queue and kind: it outlives the events and the jobs that it tells of.
--
-- statistic         how often, in a step of time: of all work, of each queue and of each kind, one row for each
--                   measure and, of a duration, for each bucket
-- statistic_cursor  how far each stream was counted
-- statistic_walk    one row: who counts has it locked, so that nothing is counted twice

CREATE TABLE testigo.statistic (
    step_seconds  integer NOT NULL,
    scope         text NOT NULL CHECK (scope IN ('all', 'queue', 'kind')),
    at            timestamptz NOT NULL,
    name          text NOT NULL,
    measure       text NOT NULL,
    bucket        integer NOT NULL,
    n             bigint NOT NULL,
    PRIMARY KEY (step_seconds, scope, at, name, measure, bucket)
) WITH (fillfactor = 85);

COMMENT ON COLUMN testigo.statistic.at IS 'The beginning of the step, a multiple of it since 1970.';
COMMENT ON COLUMN testigo.statistic.name IS
    'Of the queue or kind, as the scope says; empty of all work, and of a kind that is not known any more.';
COMMENT ON COLUMN testigo.statistic.bucket IS
    'Of a duration: bucket b has those of at most 10^(b/10) milliseconds, and of more than bucket b - 1; else 0.';

CREATE TABLE testigo.statistic_cursor (
    stream    text PRIMARY KEY,
    sequence  bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE testigo.statistic_walk (
    singleton   boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    sampled_at  timestamptz NOT NULL DEFAULT '-infinity',
    place       text NOT NULL DEFAULT ''
) WITH (fillfactor = 50);

COMMENT ON COLUMN testigo.statistic_walk.place IS
    'The last stream that was counted: the next step begins with the stream after it.';

INSERT INTO testigo.statistic_walk DEFAULT VALUES;

-- The bucket of a duration, from a millisecond to 366 days; ten for each decade.
CREATE FUNCTION testigo.bucket_of(seconds double precision) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CAST(ceil(10 * log(least(greatest(seconds, 0.001), 31622400) * 1000)) AS integer)
$$;
