create or replace function trunkline.keep_floor(queue text, reached timestamptz) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set row_security = on as $$
-- Stores a floor for sessions and processes that start later. Waits for no lock, and writes at most
-- every ten seconds. Stores nothing if the role lacks the right. Also stores nothing above the
-- isolation level read committed, because a concurrent update would be an error there. Storing a
-- floor also starts a check for rows that were written while a clock was ahead. The check reads a
-- few messages, and repairs all of them if the time stored with the last floor is more than a
-- minute ahead of the clock.
declare
    clock timestamptz := clock_timestamp();
    kept timestamptz;
begin
    if current_setting('transaction_isolation') not in ('repeatable read', 'serializable')
       and has_column_privilege('trunkline.floor', 'reached', 'update') and has_column_privilege('trunkline.floor', 'shown', 'update') then
        select greatest(k.reached, k.shown) into kept from trunkline.floor k
        where k.queue = keep_floor.queue
          and (k.reached < keep_floor.reached - interval '10 s' or k.reached > clock or k.shown between clock - interval '10 s' and clock is not true)
        for update skip locked;
        if found then
            update trunkline.floor f set reached = least(keep_floor.reached, clock), shown = clock where f.queue = keep_floor.queue;
            execute format('select trunkline.%I($1, $2)', 'do_right_' || queue)
                using case when kept > clock + interval '1 minute' then 1 else 0 end, case when kept > clock + interval '1 minute' then kept - clock end;
        end if;
    end if;
end $$;
