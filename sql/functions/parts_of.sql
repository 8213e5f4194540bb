create or replace function trunkline.parts_of(queue text) returns text[]
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Returns the parts of a queue: the folders of sql/queue whose tables and functions it has. Later parts may use earlier
-- ones.
begin
    return (
        select array_remove(array[
            'common',
            case when q.lanes > 0 then 'partitioned' when q.priorities > 1 then 'priority' else 'plain' end,
            case when q.lanes = 0 then 'unpartitioned' end,
            case when q.uniqueness then 'unique' end,
            case when q.uniqueness then case when q.priorities > 1 then 'unique_priority' else 'unique_plain' end end,
            case when coalesce(q.max_leased, q.per_second) is not null then 'limited' end,
            -- A schema that 0.1.0 created keeps the names of its steps.
            case when exists (select from trunkline.migration m where m.name <> 'see trunkline.version') then 'older' end], null)
        from trunkline.queue q where q.name = queue);
end $$;
