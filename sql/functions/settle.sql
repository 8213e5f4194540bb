create or replace function trunkline.settle(
    verb text, queue text, ids bigint[], attempts int[], span interval default null, reason text default null) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set jit = off as $$
-- Ends leases by a verb, for trunkline.ack and the other functions that end leases. Fails with TL001 and names the
-- messages that are no longer leased, or that are not next in the order of their key.
declare
    is_ordered bool;
    is_limited bool;
    range_ids bigint[];
    range_sizes int[];
    range_attempts int[];
    met_ids bigint[];
    met_sizes int[];
    met_attempts int[];
    lost bigint[];
    asked bigint;
    settled bigint;
begin
    perform trunkline.check_queue(queue);
    if ids is null and attempts is null then
        return; -- array_agg returns null if there was nothing to lease
    end if;
    if array_ndims(ids) > 1 or array_ndims(attempts) > 1 then -- array_position searches only arrays of one dimension
        raise exception 'ids and attempts must be arrays of one dimension, not of %', greatest(array_ndims(ids), array_ndims(attempts))
            using errcode = 'array_subscript_error', hint = 'Pass id and attempt as trunkline.lease returned them.';
    end if;
    if ids is null or cardinality(ids) is distinct from cardinality(attempts) or array_position(ids, null) is not null
       or array_position(attempts, null) is not null then
        raise exception '%', case when cardinality(ids) = cardinality(attempts) then 'an id or an attempt is null'
                                  else format('ids and attempts must have the same length: %s ids, %s attempts',
                                              coalesce(cardinality(ids)::text, 'null'), coalesce(cardinality(attempts)::text, 'null')) end
            using errcode = 'invalid_parameter_value', hint = 'Pass id and attempt as trunkline.lease returned them.';
    end if;
    if length(reason) > 16384 then
        -- The library has the same bounds. Tracebacks begin with the call and end with the error.
        reason := left(reason, 8000) || chr(10) || format('... %s characters left out ...', length(reason) - 16000) || chr(10) || right(reason, 8000);
    end if;
    select q.lanes > 0 and q.per_key = 1, q.max_leased is not null into is_ordered, is_limited from trunkline.queue q where q.name = settle.queue;
    if is_ordered and verb in ('ack', 'archive') then
        execute format('select trunkline.%I($1)', 'do_behind_' || queue) into lost using ids;
        if lost is not null then
            raise exception 'message % of queue % must wait for an earlier message of its key, which will be retried', array_to_string(lost[1:3], ', '), quote_literal(queue)
                using errcode = 'TL001', detail = 'The order of the key would be lost.',
                      hint = 'Roll back what was done for it, and release it with trunkline.release: it is delivered again, in order.';
        end if;
    end if;
    if cardinality(ids) = 1 then
        -- The usual case: a message is a range of its own. This costs less than the general case.
        ids := ids[:];
        if ids[1] between 1024 and 9223372036854774783 then
            execute format('select d.id from trunkline.%I($1, array[1], $2[:]%s) d', 'do_' || verb || '_' || queue,
                           case when verb in ('retry', 'charge') then ', array[$3], array[$4]'
                                when verb = 'bury' then ', array[$4]' when verb = 'extend' then ', $3' else '' end)
                into settled using ids, attempts, span, reason;
        end if;
        lost := case when settled is null then ids end;
    else
        -- Groups consecutive ids into ranges, by a plan that the session keeps. The statement that
        -- names the queue's function is planned again with each call, so it is short.
        select array_agg(r.id order by r.id, r.attempt), array_agg(r.size order by r.id, r.attempt),
               array_agg(r.attempt order by r.id, r.attempt), coalesce(sum(r.size), 0)
        into range_ids, range_sizes, range_attempts, asked
        from (select min(i.id) as id, count(*)::int as size, i.attempt
              from (select a.id, a.attempt, a.id - row_number() over (partition by a.attempt order by a.id) as island
                    from (select distinct u.id, u.attempt from unnest(ids, attempts) u(id, attempt)) a
                    where a.id between 1024 and 9223372036854774783) i
              group by i.attempt, i.island) r;
        if range_ids is not null then
            execute format('select array_agg(d.id), array_agg(d.size), array_agg(d.attempt), sum(d.size) from trunkline.%I($1, $2, $3%s) d',
                           'do_' || verb || '_' || queue,
                           case when verb in ('retry', 'charge') then ', array_fill($4, array[cardinality($1)]), array_fill($5, array[cardinality($1)])'
                                when verb = 'bury' then ', array_fill($5, array[cardinality($1)])'
                                when verb = 'extend' then ', $4' else '' end)
                into met_ids, met_sizes, met_attempts, settled using range_ids, range_sizes, range_attempts, span, reason;
        end if;
        if settled is distinct from asked or exists (select from unnest(ids) u(id) where u.id not between 1024 and 9223372036854774783) then
            lost := (select array_agg(l.id order by l.id) from (
                select u.id, u.attempt from unnest(ids, attempts) u(id, attempt)
                except
                select m.id + k, m.attempt from unnest(met_ids, met_sizes, met_attempts) m(id, size, attempt), generate_series(0, m.size - 1) k) l);
        end if;
    end if;
    if is_limited and verb <> 'extend' then
        -- Wakes consumers that may be waiting because the limit of leased messages was reached.
        perform pg_notify('trunkline.' || queue, '') where trunkline.announced('trunkline.' || queue);
    end if;
    if lost is not null then
        raise exception 'the lease of message % of queue % is lost', array_to_string(lost[1:3], ', '), quote_literal(queue)
            using errcode = 'TL001', detail = 'It ended, and another consumer may have the message now.',
                  hint = 'Roll back what was done for it. Work that takes longer needs a longer lease, or trunkline.extend.';
    end if;
end $$;
