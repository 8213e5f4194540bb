create or replace function trunkline.prune(queue text, age interval) returns bigint
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off as $$
-- Deletes messages that were archived longer ago than age, in the caller's transaction; returns how many. If there are
-- millions, begin with a greater age. A message that was archived while a clock was ahead counts as archived now.
--
-- Example:
--     select trunkline.prune('emails', '30 days');
declare
    clock constant timestamptz := clock_timestamp(); -- read once, because a condition on a volatile function cannot use an index
    count bigint;
begin
    perform trunkline.check_queue(queue);
    if age is null or age < '0' then
        raise exception 'an age of % is out of bounds', coalesce(age::text, 'null')
            using errcode = 'invalid_parameter_value', hint = 'An age is at least zero; zero deletes the whole archive.';
    end if;
    execute format('update trunkline.%I a set archived_at = $1 where a.archived_at > $1', 'archive_' || queue) using clock;
    -- No message is older than 6,000 years, and no time is earlier than 4713 BC.
    execute format('delete from trunkline.%I a where a.archived_at <= $1', 'archive_' || queue) using clock - least(age, '6000 years');
    get diagnostics count = row_count;
    return count;
end $$;
