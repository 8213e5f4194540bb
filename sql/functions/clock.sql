create or replace function trunkline.clock() returns timestamptz
    language sql volatile parallel unsafe
    return case when pg_current_xact_id() is not null then clock_timestamp() end;
comment on function trunkline.clock() is 'Returns the time for every due_at. The transaction gets its id before it reads the clock.
So every snapshot taken later shows each transaction that can still commit a row that is due before this time. The floor under every scan relies on that.
Written as an expression, so that it is inlined and no search_path matters.';
