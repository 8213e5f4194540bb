create or replace function trunkline.{do_own_}()
    returns text language plpgsql immutable set search_path = pg_catalog, pg_temp as $f$
-- How to read the columns that users added off a row of the queue's table: a statement that makes texts of them, by name, or
-- null where there are none. Immutable as long as the table is not altered, and then Postgres plans again whatever reads it:
-- so a statement over the table finds a constant here, and where there are no such columns nothing of it is left in the
-- plan. Elsewhere the constant would grow old. The variable has the table's columns of now, in an old snapshot, too.
declare
    r trunkline.{queue_}%rowtype;
    own jsonb;
begin
    r.size := 0; -- else it is null as a whole
    own := to_jsonb(r) - array['id', 'enqueued_at', 'due_at', 'attempt', 'released', 'size', 'error', 'payload', 'metadata']
        - {lane_columns}::text[]; -- which costs less by itself
    if own = '{}' then
        return null;
    end if;
    return (select format('select jsonb_object(%L::text[], array[%s])', array_agg(o.name), string_agg(format('($1).%I::text', o.name), ', '))
            from jsonb_object_keys(own) o(name));
end $f$;
