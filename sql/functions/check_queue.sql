create or replace function trunkline.check_queue(queue text) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Fails, with a hint, if the queue does not exist.
begin
    if queue is null or not exists (select from trunkline.queue q where q.name = queue) then
        raise exception 'there is no queue %', coalesce(quote_literal(queue), 'NULL')
            using errcode = 'undefined_table',
                  hint = 'Create it with: select trunkline.create_queue(''name'', ''jsonb'')';
    end if;
end $$;
