create or replace function trunkline.{do_row_}(due float8, size int, payload {type}[], metadata jsonb[], lane int)
    returns bigint language plpgsql set search_path = pg_catalog, pg_temp as $f$
-- Inserts one row of messages, for do_unique_, and returns its id. due: as in sql/statements/plain/enqueue_with.sql.
#variable_conflict use_variable
declare
    id bigint;
begin
    insert into trunkline.{queue_} as q (due_at, size, payload, metadata, lane)
    values (trunkline.due_from(due), size, payload, metadata, lane)
    returning q.id into id;
    if id is null then
        perform trunkline.not_stored({literal}, size, 0);
    end if;
    return id;
end $f$;
