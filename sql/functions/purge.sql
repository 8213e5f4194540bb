create or replace function trunkline.purge(queue text) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Deletes all waiting and leased messages of a queue; its dead letters and archive stay. Returns how many messages were
-- deleted.
--
-- Example:
--     select trunkline.purge('emails');
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('with gone as (delete from trunkline.%I q returning q.size) select coalesce(sum(g.size), 0) from gone g',
                   'queue_' || queue) into count;
    if (select q.lanes > 0 from trunkline.queue q where q.name = queue) then
        execute format('delete from trunkline.%I', 'line_' || queue);
    end if;
    return count;
end $$;
