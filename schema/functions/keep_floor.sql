-- Keeps a floor for sessions and processes that begin later. Waits for nobody, and writes every ten seconds at most. At
-- other isolation levels than read committed a concurrent update would be an error: there it keeps nothing. Neither does a
-- role that was given rights by hand, and not this one.
create or replace function trunkline.keep_floor(queue text, reached timestamptz) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
    if current_setting('transaction_isolation') = 'read committed'
       and has_column_privilege('trunkline.floor', 'reached', 'update') then
        update trunkline.floor f set reached = keep_floor.reached
        where f.queue = (select k.queue from trunkline.floor k
                         where k.queue = keep_floor.queue and k.reached < keep_floor.reached - interval '10 s' for update skip locked);
    end if;
end $$;
