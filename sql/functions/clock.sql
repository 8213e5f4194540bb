create or replace function trunkline.clock() returns timestamptz
    language sql volatile parallel unsafe
    return case when pg_current_xact_id() is not null then clock_timestamp() end;
comment on function trunkline.clock() is 'The clock for every due_at. The transaction has its id before it draws the time: so a transaction that can still commit a row
that is due before now is seen in every snapshot taken after now. The floor under every scan rests on that.
Written as an expression, so that it is inlined and no search_path matters.';
