create or replace function trunkline.{do_batch_}(payloads {type}[], delay interval default '0', metadata jsonb[] default null,
        due timestamptz default null)
    returns setof bigint language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Enqueues one row or several, for callers that have no client library. Wakes the listeners when
-- the transaction commits. A row ends after {max_batch} messages or about 64 KiB. The messages are
-- due after the delay, or at a given time, and never before now. Slices count from 1, whatever the
-- lower bound of the caller's array.
#variable_conflict use_variable
declare
    stored bigint;
begin
    if delay is null or delay < '0' or delay > '36500 days' then
        raise exception 'a delay of % is out of bounds', coalesce(delay::text, 'null') using errcode = 'invalid_parameter_value',
            hint = 'A delay is at least zero and at most 36500 days.';
    elsif payloads is null then
        raise exception 'the payloads of queue % are null', quote_literal({literal}) using errcode = 'null_value_not_allowed',
            hint = 'Pass an array; an empty one enqueues nothing.';
    elsif array_ndims(payloads) > 1 then
        raise exception 'the payloads must be an array of one dimension, not of %', array_ndims(payloads)
            using errcode = 'array_subscript_error', hint = 'Pass an array of one dimension.';
    end if;
    payloads := payloads[:];
    if metadata is not null then
        if cardinality(metadata) <> cardinality(payloads) then
            raise exception 'the call has % payloads, but metadata for %', cardinality(payloads), cardinality(metadata)
                using errcode = 'invalid_parameter_value', hint = 'Pass one for each payload, or null for a payload without one.';
        end if;
        perform trunkline.check_metadata(m) from unnest(metadata) m;
    end if;
    return query
        with message as (
            select m.nr, m.metadata, trunkline.payload_bytes({literal}, pg_column_size(m.payload)) + coalesce(pg_column_size(m.metadata), 0) as bytes
            from (select generate_series(1, cardinality(payloads)) as nr, unnest(payloads) as payload, unnest(metadata) as metadata) m
        ), placed as (
            select m.*, (sum(m.bytes) over (order by m.nr) - m.bytes)::bigint / 65536 as page from message m
        ), batch as (
            insert into trunkline.{queue_} (due_at, size, payload, metadata)
            select greatest(greatest(trunkline.clock(), due) + delay, trunkline.clock()), count(*),
                   array(select payloads[k] from generate_series(min(p.nr), max(p.nr)) k),
                   case when count(p.metadata) > 0 then array_agg(p.metadata order by p.nr) filter (where metadata is not null) end
            from placed p group by p.page, p.bytes > 65536, (p.nr - 1) / {max_batch} order by min(p.nr)
            returning id, size
        )
        select b.id + k from batch b, generate_series(0, b.size - 1) k order by b.id, k;
    get diagnostics stored = row_count;
    if stored <> cardinality(payloads) then
        perform trunkline.not_stored({literal}, cardinality(payloads), stored);
    end if;
    if cardinality(payloads) > 0 and trunkline.announced({channel}) then
        perform pg_notify({channel}, '');
    end if;
end $f$;
