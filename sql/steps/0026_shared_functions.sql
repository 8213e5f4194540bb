-- Functions that each queue had became functions that all queues share. A migration creates them and, in transactions of
-- their own because of the locks, drops the others (trunkline.describe_functions). This step changes the version, so that
-- programs that call the new functions refuse an older schema, and drops a shared function that is no longer called.
drop function if exists trunkline.dispatch(text, anyelement);

-- A data-only dump restores `migration` into a schema whose tables are empty, and inserts its 15 rows. Programs of 0.1.0
-- find these rows, and are refused as before.
create or replace function trunkline.refuse_older() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if (select count(*) from trunkline.migration) < 15 then
        return null;
    end if;
    raise exception 'this schema is at version %, newer than this program supports', (select max(v.version) from trunkline.version v)
        using errcode = 'object_not_in_prerequisite_state', hint = 'Nothing was changed; migrate with a newer trunkline.';
end $$;
