create or replace function trunkline.enqueue_rows(queue text, payloads anyarray, columns jsonb, due float8, metadata jsonb[], priority int, keys text[])
    returns setof bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Enqueues messages with the same values in columns that users added, and returns their ids in order. Messages of the
-- same partition share rows, up to the queue's max_batch or about 64 KiB. due: as in trunkline.enqueue_row.
declare
    q trunkline.queue;
    batch record;
    ids bigint[] := '{}';
    first bigint;
    part payloads%type;
begin
    perform trunkline.check_columns(queue, columns), trunkline.check_keys(queue, keys, cardinality(payloads)),
            trunkline.check_priority(queue, priority);
    if payloads is null then
        raise exception 'the payloads of queue % are null', quote_literal(queue) using errcode = 'null_value_not_allowed',
            hint = 'Pass an array; an empty one enqueues nothing.';
    elsif array_ndims(payloads) > 1 then
        raise exception 'the payloads must be an array of one dimension, not of %', array_ndims(payloads)
            using errcode = 'array_subscript_error', hint = 'Pass an array of one dimension.';
    elsif metadata is not null and cardinality(metadata) <> cardinality(payloads) then
        raise exception 'the call has % payloads, but metadata for %', cardinality(payloads), cardinality(metadata)
            using errcode = 'invalid_parameter_value', hint = 'Pass one for each payload, or null for a payload without one.';
    end if;
    perform trunkline.check_metadata(m) from unnest(metadata) m;
    payloads := payloads[:]; -- done once, because a slice copies the whole array
    select * into q from trunkline.queue u where u.name = queue;
    ids := array_fill(null::bigint, array[cardinality(payloads)]);
    for batch in
        with message as (
            select m.nr, m.metadata, m.key, case when q.lanes > 0 then q.first_lane + trunkline.lane_of(m.key, q.lanes) else priority end as lane,
                   trunkline.payload_bytes(queue, pg_column_size(m.payload)) + coalesce(pg_column_size(m.metadata), 0) as bytes
            from (select generate_series(1, cardinality(payloads)) as nr, unnest(payloads) as payload, unnest(metadata) as metadata,
                         unnest(keys) as key) m
        ), placed as (
            select m.*, row_number() over w as at, (sum(m.bytes) over w - m.bytes)::bigint / 65536 as page
            from message m window w as (partition by m.lane order by m.nr)
        )
        select array_agg(p.nr order by p.nr) as nrs, p.lane, case when count(p.metadata) > 0 then array_agg(p.metadata order by p.nr) end as metadata,
               case when q.lanes > 0 then array_agg(p.key order by p.nr) end as keys
        from placed p group by p.lane, p.page, p.bytes > 65536, (p.at - 1) / q.max_batch order by min(p.nr)
    loop
        part := array(select payloads[u.nr] from unnest(batch.nrs) with ordinality u(nr, at) order by u.at);
        first := trunkline.enqueue_row(queue, part, columns, due, batch.metadata, batch.lane, batch.keys);
        for i in 1..cardinality(batch.nrs) loop
            ids[batch.nrs[i]] := first + i - 1;
        end loop;
    end loop;
    if ids <> '{}' and trunkline.announced('trunkline.' || queue) then
        perform pg_notify('trunkline.' || queue, '');
    end if;
    return query select unnest(ids);
end $$;
