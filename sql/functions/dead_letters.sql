create or replace function trunkline.dead_letters(queue text, after bigint default 0, n int default 100)
    returns table (id bigint, enqueued_at timestamptz, dead_at timestamptz, attempt int, error text, payload text, metadata jsonb, key text)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Returns a page of dead letters, ordered by id. Values of columns that you added are not in the result: they are in
-- the column own of the table trunkline."dead_NAME".
--
-- after: the last id of the previous page; 0 for the first page. n: the maximum number of dead letters on the page.
--
-- Example:
--     select id, dead_at, attempt, error, payload from trunkline.dead_letters('emails', after => 0, n => 10);
begin
    perform trunkline.check_queue(queue);
    if after is null then
        raise exception 'a page begins after an id, not after null'
            using errcode = 'null_value_not_allowed', hint = 'Pass 0 for the first page, then the last id of the page before.';
    end if;
    return query execute format(
        'select d.id, d.enqueued_at, d.dead_at, d.attempt, d.error, d.payload::text, d.metadata, %s
         from trunkline.page(null::trunkline.%I, $1, $2) d',
        case when (select q.lanes > 0 from trunkline.queue q where q.name = queue) then '((d.own ->> ''keys'')::text[])[1]' else 'null::text' end,
        'dead_' || queue) using after, trunkline.check_n(n);
end $$;
