create or replace function trunkline.check_wait(wait interval) returns float8
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Returns a wait in seconds. Fails if it is out of bounds, or if the transaction cannot wait. The
-- waiting statement's snapshot keeps vacuum, in the whole database, from removing rows that died
-- since it was taken. So a wait is at most a minute, which is autovacuum's default interval.
begin
    -- Compares seconds, which the caller waits, because a comparison of intervals counts a year as 360 days.
    if wait is null or extract(epoch from wait) not between 0 and 60 then
        raise exception 'a wait of % is out of bounds', coalesce(wait::text, 'null')
            using errcode = 'invalid_parameter_value', hint = 'A wait is at least zero, which is none, and at most 1 minute. For longer, call again.';
    elsif current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        raise exception 'a transaction that is % cannot wait, because it does not see messages that arrive later', current_setting('transaction_isolation')
            using errcode = 'invalid_transaction_state',
                  hint = 'Wait in a transaction that is read committed, or leave out wait and call again in another transaction.';
    elsif pg_current_xact_id_if_assigned() is not null then
        raise exception 'a transaction that has written something would hide it from all other sessions while it waits'
            using errcode = 'invalid_transaction_state', hint = 'Commit before you wait, or leave wait out.';
    end if;
    return extract(epoch from wait);
end $$;
