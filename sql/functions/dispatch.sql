create or replace function trunkline.dispatch(queue text, payload anyelement) returns bigint language plpgsql as $$
-- Enqueues one message without options by EXECUTE, for trunkline.enqueue, if that function has no
-- branch for the queue; returns null if there is no such queue, or if a trigger refused the row.
-- Every name includes its schema, because setting a search_path would add to the cost of each
-- message.
declare
    id pg_catalog.int8;
    call pg_catalog.text;
begin
    if queue is null then
        return null;
    end if;
    call := pg_catalog.format('trunkline.%I', 'do_enqueue_' operator(pg_catalog.||) queue);
    if pg_catalog.to_regproc(call) is not null then
        execute 'select ' operator(pg_catalog.||) call operator(pg_catalog.||) '($1)' into id using payload;
    end if;
    return id;
end $$;
