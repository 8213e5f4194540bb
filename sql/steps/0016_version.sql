-- The steps that were applied, and the oldest version whose programs work on them. Programs of 0.1.0 compare the newest row of `migration` with 15, and need
-- equality: that table stays as 0.1.0 left it, so that they open the schema, and their `migrate` finds nothing to do. A row above 15 there would shut them out.
-- `version` itself is created at the start of `migrate`, which reads it.
insert into trunkline.migration (version, name, functions)
select n, 'see trunkline.version', '0659d86fbc68a153' from generate_series(1, 15) n
on conflict (version) do update set functions = excluded.functions;
comment on table trunkline.migration is 'What programs of 0.1.0 read; everything newer reads trunkline.version.';

create function trunkline.refuse_older() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Stops a migration by a program of 0.1.0 that read the version before this step and waited for the lock: it would
-- install its own functions.
begin
    raise exception 'this schema is at version %, newer than this program supports', (select max(v.version) from trunkline.version v)
        using errcode = 'object_not_in_prerequisite_state', hint = 'Nothing was changed; migrate with a newer trunkline.';
end $$;
create trigger refuse_older before insert or update or delete on trunkline.migration
    for each statement execute function trunkline.refuse_older();
