create or replace function trunkline.own_columns(queue text, ids bigint[]) returns table (id bigint, columns jsonb)
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set enable_material = off set jit = off as $$
-- Returns the values that messages have in columns that you added to the queue's table, as texts by name. A message may
-- be waiting, leased, dead or archived. The result has no row for an id without a message, and no value for a column
-- that is null.
--
-- Example:
--     select id, columns ->> 'tenant' from trunkline.own_columns('emails', '{2048}');
begin
    perform trunkline.check_queue(queue);
    if ids is null then
        raise exception 'the message ids must not be null' using errcode = 'null_value_not_allowed',
            hint = 'Pass an array of ids, which may be empty.';
    end if;
    return query execute format(
        'select m.id, jsonb_strip_nulls(coalesce(q.own, d.own, a.own, ''{}'') - $2)
         from unnest($1) m(id)
         left join lateral (
             select l.id, l.own from (select r.id, r.size, trunkline.%I(r.*) as own from trunkline.%I r
                                      where r.id <= m.id and r.id >= m.id / 1024 * 1024 order by r.id desc limit 1) l
             where m.id - l.id < l.size) q on true
         left join trunkline.%I d on d.id = m.id
         left join trunkline.%I a on a.id = m.id
         where q.id is not null or d.id is not null or a.id is not null',
        'do_kept_' || queue, 'queue_' || queue, 'dead_' || queue, 'archive_' || queue)
        using ids, (select case when q.lanes > 0 then '{lane,line,place,keys}' when q.priorities > 1 then '{lane}' else '{}' end::text[]
                    from trunkline.queue q where q.name = queue);
end $$;
