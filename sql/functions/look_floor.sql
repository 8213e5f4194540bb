create or replace function trunkline.look_floor(queue text, keep bool) returns timestamptz
    language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
-- Determines how far the floor under this session's scans can rise, stores the new floor in the
-- session's setting, and returns it. trunkline.floor calls this function.
declare
    setting text := format('trunkline.floor_%s', to_regclass(format('trunkline.%I', 'queue_' || queue))::oid);
    known bigint[] := nullif(current_setting(setting, true), '')::bigint[];
    clock bigint := trunkline.epoch_of(clock_timestamp());
    reached timestamptz;
    seen record;
    swept record;
begin
    if known is null then
        reached := trunkline.kept_floor(queue);
    else
        reached := trunkline.time_of(known[1]);
        if clock < known[4] then
            reached := least(reached, now() - interval '1 s'); -- the clock stepped back
            known := null;
        end if;
    end if;
    execute format('select min(l.oldest) as oldest, min(l.candidate) as candidate, min(l.running) as running, max(l.next) as next
                    from trunkline.%I(%s) l', 'do_look_' || queue, trunkline.in_lanes(queue, '$1')) into seen using reached;
    if known is null then
        known := array[0, trunkline.epoch_of(seen.candidate), seen.next, 0, 0];
    else
        if seen.running >= known[3] then
            reached := greatest(reached, least(trunkline.time_of(known[2]), seen.oldest));
            known := array[0, trunkline.epoch_of(seen.candidate), seen.next, 0, known[5]];
            if keep then
                perform trunkline.keep_floor(queue, reached);
            end if;
        end if;
        execute format('select * from trunkline.%I(%s, $2)', 'do_sweep_' || queue, trunkline.in_lanes(queue, '$1')) into swept using reached, known[5];
        reached := least(reached, swept.stray);
        known[5] := swept.next_page;
    end if;
    known[1] := trunkline.epoch_of(reached);
    known[4] := clock;
    perform set_config(setting, known::text, false);
    return reached;
end $$;
