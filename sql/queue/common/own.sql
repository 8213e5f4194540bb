create or replace function trunkline.{do_own_}()
    returns text language plpgsql immutable set search_path = pg_catalog, pg_temp as $f$
-- Returns a statement that reads the columns that users added from a row of the queue's table, as
-- texts by name; null if there are no such columns. The result is immutable as long as the table is
-- not altered, and altering the table makes Postgres plan again. So the planner can treat the
-- result as a constant in a statement over the table; without such columns, the plan then does not
-- contain the call. In other statements the constant would become outdated, because altering the
-- table does not make Postgres plan those again. The function takes the columns from a variable of
-- the row's type, which has the table's present columns even in an old snapshot.
declare
    r trunkline.{queue_}%rowtype;
    own jsonb;
begin
    r.size := 0; -- otherwise the record as a whole is null
    own := to_jsonb(r) - array['id', 'enqueued_at', 'due_at', 'attempt', 'released', 'size', 'error', 'payload', 'metadata']
        - {own_columns}::text[]; -- a separate subtraction costs less
    if own = '{}' then
        return null;
    end if;
    return (select format('select jsonb_object(%L::text[], array[%s])', array_agg(o.name), string_agg(format('($1).%I::text', o.name), ', '))
            from jsonb_object_keys(own) o(name));
end $f$;
