create or replace function trunkline.change(verb text, queue text, ids bigint[], due timestamptz default null) returns setof bigint
    language plpgsql set search_path = pg_catalog, pg_temp set jit = off as $$
-- Cancels or reschedules messages, for trunkline.cancel and trunkline.reschedule. If a row is locked, the cause is
-- usually brief and concerns another message of the row. So this function retries for a tenth of a second.
declare
    changed bigint[];
    busy bigint[] := ids;
begin
    perform trunkline.check_queue(queue);
    if ids is null then
        raise exception 'the message ids must not be null' using errcode = 'null_value_not_allowed',
            hint = 'Pass an array of ids, which may be empty.';
    end if;
    for pass in 1..20 loop
        execute format('select array_agg(c.id order by c.id) filter (where c.done), array_agg(c.id) filter (where not c.done) from trunkline.%I($1 %s) c',
                       'do_' || verb || '_' || queue, case verb when 'reschedule' then ', $2' else '' end)
            into changed, busy using busy, due;
        return query select unnest(changed);
        exit when busy is null;
        perform pg_sleep(0.005);
    end loop;
    if verb = 'cancel' and exists (select from trunkline.queue q where q.name = change.queue and q.max_leased is not null) then
        -- The call may have ended leases. So it wakes consumers that wait because the limit of leased messages was
        -- reached.
        perform pg_notify('trunkline.' || queue, '') where trunkline.announced('trunkline.' || queue);
    end if;
end $$;
