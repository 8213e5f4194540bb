-- Functions that each queue had became functions that all queues share. A migration creates them and, in transactions of
-- their own because of the locks, drops the others (trunkline.describe_functions). This step changes the version, so that
-- programs that call the new functions refuse an older schema, and drops a shared function that is no longer called.
drop function if exists trunkline.dispatch(text, anyelement);

create or replace function trunkline.refuse_older() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Stops a migration by a program of 0.1.0 that read the version before step 16 and waited for the lock: it would install
-- its own functions. A data-only dump restores the 15 rows of `migration` into an empty table.
begin
    if (select count(*) from trunkline.migration) < 15 then
        return null;
    end if;
    raise exception 'this schema is at version %, newer than this program supports', (select max(v.version) from trunkline.version v)
        using errcode = 'object_not_in_prerequisite_state', hint = 'Nothing was changed; migrate with a newer trunkline.';
end $$;

-- do_gather_ and do_along_ count what they bury. So they are dropped, and created again from their files.
do $$
declare
    q trunkline.queue;
begin
    for q in select * from trunkline.queue loop
        execute format('drop function if exists trunkline.%I(int, int, bool, int, timestamptz, bigint%s)', 'do_gather_' || q.name,
                       case when q.lanes > 0 then ', int, text, text[], timestamptz' when q.priorities > 1 then ', int, timestamptz' else '' end);
        if q.lanes > 0 then
            execute format('drop function if exists trunkline.%I(int, int, timestamptz, int, int)', 'do_along_' || q.name);
        end if;
    end loop;
end $$;
