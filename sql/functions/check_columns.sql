create or replace function trunkline.check_columns(queue text, columns jsonb) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Fails, with a hint, unless the columns are an object whose names are columns that users added to the queue's table and
-- that take a value.
declare
    main regclass := to_regclass(format('trunkline.%I', 'queue_' || queue));
    reserved text[] := array['id', 'enqueued_at', 'due_at', 'attempt', 'released', 'size', 'error', 'payload', 'metadata'] || (
        select case when q.lanes > 0 then '{lane,line,place,keys}' when q.priorities > 1 then '{lane}' end::text[]
        from trunkline.queue q where q.name = queue);
    wrong text;
    is_there bool;
begin
    if jsonb_typeof(columns) is distinct from 'object' then
        raise exception 'columns must be a JSON object, not %', coalesce(left(columns::text, 100), 'null') using errcode = 'invalid_parameter_value',
            hint = 'Pass names and values, such as {"tenant": "acme"}.';
    end if;
    select c.name, a.attnum is not null into wrong, is_there
    from jsonb_object_keys(columns) c(name)
    left join pg_attribute a on a.attrelid = main and a.attname = c.name and a.attnum > 0 and not a.attisdropped
    where a.attnum is null or a.attgenerated <> '' or a.attidentity <> ''
       or c.name = any (reserved)
    order by c.name limit 1;
    if wrong is not null then
        raise exception 'queue % has no column % that accepts values', quote_literal(queue), quote_ident(wrong) using errcode = 'undefined_column',
            hint = case when is_there or wrong = '' then 'Pass columns that you added to the queue''s table. The queue or PostgreSQL fills the others.'
                        else format('Add it with: alter table trunkline.%I add column %I TYPE', 'queue_' || queue, wrong) end;
    end if;
end $$;
