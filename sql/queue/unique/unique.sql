create or replace function trunkline.{do_unique_}(
        payloads {type}[], dues float8[], metadata jsonb[], lanes int[], keys text[], terms float8[], replaces bool[], alone bool default false)
    returns table (id bigint, outcome int) language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Enqueues messages some of which have unique keys. Enqueues each message unless another message
-- has its key. Returns for each message an id and an outcome: 0 if it is new; 1 if another message,
-- whose id is returned, has the key; 2 if it replaced such a message, which was waiting. terms: for
-- how many seconds each key is kept; null keeps it until the message has ended. dues: as in
-- sql/statements/plain/enqueue_with.sql.
--
-- Free keys are claimed in sorted order, so that two calls cannot wait for each other. They are
-- claimed after the rows are inserted, because a claim names a message's id. If another call has
-- claimed a key in the meantime, the call undoes its work and searches again. So it holds no lock
-- on another call's key, and its rows have no gaps. If alone is true, the call is the only
-- statement of its transaction. Then it removes about as many expired keys as it adds, and another
-- session wakes the consumers. Only for queues with uniqueness.
#variable_conflict use_variable
declare
    since timestamptz;
    sizes bigint[];
    stays bool[];
    holders bigint[];
    firsts int[];
    lasts int[];
    wanted int;
    claimed int;
    orphans bigint[];
    expired bool;
    ahead bool;
    line record;
    nrs int[];
    part {type}[];
    beside jsonb[];
    row_id bigint;
    ids bigint[];
    done bool[];
begin
    -- A producer has no such right. Without this check, the call would fail only once a key is taken.
    if true = any (replaces) and not has_any_column_privilege('trunkline.{queue_}'::regclass, 'update') then
        raise exception 'permission denied to replace messages of queue %', quote_literal({literal}) using errcode = 'insufficient_privilege',
            detail = 'To replace waiting messages, a role also needs the rights of a consumer.';
    end if;
    payloads := payloads[:];
    if array_ndims(keys) > 1 or array_lower(keys, 1) <> 1 then
        keys := array(select u.key from unnest(keys) with ordinality u(key, nr) order by u.nr);
    end if;
    if array_ndims(metadata) > 1 then
        metadata := array(select u.metadata from unnest(metadata) with ordinality u(metadata, nr) order by u.nr);
    end if;
    metadata := metadata[:];
    sizes := array(
        select trunkline.payload_bytes({literal}, pg_column_size(m.payload)) + coalesce(pg_column_size(m.metadata), 0)
        from (select generate_series(1, cardinality(payloads)) as nr, unnest(payloads) as payload, unnest(metadata) as metadata) m order by m.nr);
    loop
        begin
            since := clock_timestamp();
            done := null;
            -- If a key is free, the first message with the key stays. It gets the contents of the
            -- last message that is to replace it. A claim whose message no longer exists, as after
            -- a restore, counts as free.
            select array_agg(p.holder is null and p.nr = p.first order by p.nr), array_agg(p.holder order by p.nr),
                   array_agg(p.first order by p.nr), array_agg(p.last order by p.nr), array_agg(p.orphan order by p.nr),
                   count(*) filter (where p.key is not null and p.holder is null and p.nr = p.first), coalesce(bool_or(p.expired), false), coalesce(bool_or(p.ahead), false)
            into stays, holders, firsts, lasts, orphans, wanted, expired, ahead
            from (select m.nr, m.key, u.is_free as expired, u.claimed_at > since as ahead, case when not u.is_free then u.id end as holder,
                         case when u.is_free then u.id end as orphan,
                         case when m.key is null then m.nr else min(m.nr) over same end as first,
                         case when m.key is not null then max(m.nr) filter (where m.replaces) over same end as last
                  from unnest(keys, replaces) with ordinality m(key, replaces, nr)
                  left join lateral (
                      select c.id, c.claimed_at, coalesce(c.until <= since, not exists (
                          select from trunkline.{queue_} q where q.id <= c.id and q.id >= c.id / 1024 * 1024 and q.id + q.size > c.id)) as is_free
                      from trunkline.{unique_} c where c.key = m.key) u on true
                  window same as (partition by m.key)) p;
            if expired and current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
                perform trunkline.check_snapshot({literal}); -- otherwise the message of a claim could be invisible
            end if;
            if ahead then
                -- The clock was ahead when the keys were claimed. The keys are kept for as long as
                -- the callers asked, from now on.
                update trunkline.{unique_} u set until = since + (u.until - u.claimed_at), claimed_at = since
                where u.key = any (array(select a.key from trunkline.{unique_} a where a.key = any (keys) and a.claimed_at > since for update skip locked));
            end if;
            ids := holders;
            for line in
                select array_agg(p.nr order by p.nr) as nrs, p.due, p.lane
                from (select m.*, (sum(m.bytes) over w - m.bytes)::bigint / 65536 as page, row_number() over w as at
                      from (select s.nr, dues[coalesce(s.last, s.nr)] as due, lanes[s.nr] as lane, sizes[coalesce(s.last, s.nr)] as bytes
                            from unnest(stays, lasts) with ordinality s(stays, last, nr) where s.stays) m
                      window w as (partition by m.due, m.lane order by m.nr)) p
                group by p.due, p.lane, p.page, p.bytes > 65536, (p.at - 1) / {max_batch} order by min(p.nr)
            loop
                nrs := line.nrs;
                if cardinality(nrs) = cardinality(payloads) then
                    part := payloads;
                    beside := metadata;
                else
                    part := '{}';
                    beside := '{}';
                    for i in 1..cardinality(nrs) loop
                        part[i] := payloads[coalesce(lasts[nrs[i]], nrs[i])];
                        beside[i] := metadata[coalesce(lasts[nrs[i]], nrs[i])];
                    end loop;
                end if;
                if num_nonnulls(variadic beside) = 0 then
                    beside := null;
                end if;
                row_id := trunkline.{do_row_}(line.due, cardinality(nrs), part, beside, line.lane);
                for i in 1..cardinality(nrs) loop
                    ids[nrs[i]] := row_id + i - 1;
                end loop;
            end loop;
            claimed := 0;
            if not expired then
                insert into trunkline.{unique_} (key, id, until, claimed_at)
                select k.key, k.id, since + k.term * interval '1 second', case when k.term is not null then since end
                from unnest(keys, ids, terms, stays) k(key, id, term, stays)
                where k.stays and k.key is not null order by k.key collate "C"
                on conflict on constraint {uniquekey_} do nothing;
                get diagnostics claimed = row_count;
            else
                -- If some keys have expired, keys are claimed one by one: a call that fails to get
                -- a key must not lock it while it waits for the next key.
                for line in
                    select k.key, k.id, since + k.term * interval '1 second' as until, k.orphan
                    from unnest(keys, ids, terms, stays, orphans) k(key, id, term, stays, orphan)
                    where k.stays and k.key is not null order by k.key collate "C"
                loop
                    insert into trunkline.{unique_} as u (key, id, until, claimed_at)
                    values (line.key, line.id, line.until, case when line.until is not null then since end)
                    on conflict on constraint {uniquekey_} do update
                    set id = excluded.id, until = excluded.until, claimed_at = excluded.claimed_at
                    where u.until <= since or u.until is null and u.id = line.orphan;
                    exit when not found;
                    claimed := claimed + 1;
                end loop;
            end if;
            if claimed < wanted then
                raise exception sqlstate 'TL000';
            end if;
            if exists (select from unnest(holders, lasts) h(holder, last) where h.holder is not null and h.last is not null) then
                done := trunkline.{do_replace_}(payloads, dues, metadata, keys, holders, lasts);
            end if;
            exit;
        exception when sqlstate 'TL000' then
            null; -- another call claimed one of the keys, or ended the message that was to be replaced
        end;
    end loop;
    return query
        select ids[o.first],
               case when o.stays then 0 when not o.replaces then 1 when o.holder is null or done[o.last] then 2 else 1 end
        from unnest(stays, firsts, holders, lasts, replaces) with ordinality o(stays, first, holder, last, replaces, nr) order by o.nr;
    if not alone then
        perform pg_notify({channel}, '') where cardinality(payloads) > 0 and trunkline.announced({channel});
    elsif exists (select from unnest(terms) t where t is not null) then
        perform trunkline.{do_forget_}(1 + cardinality(terms) / 32);
    end if;
end $f$;
