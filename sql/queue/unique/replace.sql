create or replace function trunkline.{do_replace_}(
        payloads {type}[], dues float8[], metadata jsonb[], keys text[], holders bigint[], lasts int[])
    returns bool[] language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Gives waiting messages the payload, metadata and due time of the last entry that has their key.
-- Returns, by number, which entries replaced a message. A message that is leased stays unchanged,
-- and so does one that is locked for more than a tenth of a second. If a message has ended in the
-- meantime, and its key is free, TL000 makes the caller start again. Due times are treated as in
-- do_reschedule_. Only for queues with uniqueness.
#variable_conflict use_variable
declare
    done bool[];
    asked bigint[];
    nrs int[];
    busy bigint[];
    picked record;
    message bigint;
    at int;
    nr int;
    due timestamptz;
    part {type}[];
    beside jsonb[];
    size int;
begin
    select array_agg(h.holder order by h.holder), array_agg(h.nr order by h.holder) into asked, nrs
    from unnest(holders, lasts) with ordinality h(holder, last, nr) where h.holder is not null and h.last = h.nr;
    busy := asked;
    for pass in 1..20 loop
        picked := trunkline.{do_pick_}(busy, false);
        at := 1;
        for message in
            select d.id + k from unnest(picked.first, picked.sizes) d(id, size), generate_series(0, d.size - 1) k order by 1
        loop
            while asked[at] < message loop
                at := at + 1;
            end loop;
            nr := nrs[at];
            size := (select q.size from trunkline.{queue_} q where q.id = message);
            if size > 1 then
                perform trunkline.{do_split_}(message, array(select generate_series(1, size)));
            end if;
            part := '{}';
            part[1] := payloads[nr];
            beside := null;
            if metadata[nr] is not null then
                beside[1] := metadata[nr];
            end if;
            due := case when dues[nr] >= 0 then clock_timestamp() + dues[nr] * interval '1 second' else to_timestamp(-dues[nr]) end;
            update trunkline.{queue_} q
            set payload = part, metadata = beside,
                due_at = case when due > clock_timestamp() then due else least(q.due_at, trunkline.clock()) end,
                error = case when q.attempt > 0 and due > clock_timestamp() then coalesce(q.error, 'the lease expired') else q.error end
            where q.id = message;
            done[nr] := true;
        end loop;
        busy := picked.busy;
        exit when cardinality(busy) = 0;
        perform pg_sleep(0.005);
    end loop;
    if exists (select from unnest(nrs, asked) a(nr, holder)
               where done[a.nr] is null and not exists (
                   select from trunkline.{unique_} u where u.key = keys[a.nr] and u.id = a.holder)) then
        raise exception sqlstate 'TL000';
    end if;
    return done;
end $f$;
