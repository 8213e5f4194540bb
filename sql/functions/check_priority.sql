create or replace function trunkline.check_priority(queue text, priority int) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Returns the SQL text of the arguments that name this priority in a call of do_batch_, or an empty text if the queue
-- has no priorities. Fails if the queue does not have this priority.
declare
    priorities int;
begin
    select q.priorities into priorities from trunkline.queue q where q.name = queue;
    if (priority >= 0 and priority < priorities) is not true then
        raise exception 'queue % has no priority %', quote_literal(queue), coalesce(priority::text, 'null')
            using errcode = 'invalid_parameter_value',
                  hint = case priorities when 1 then 'The queue has no priorities. Create one that has: trunkline.create_queue(..., priorities => 4).'
                                         else format('Its priorities are 0 to %s; the highest goes first.', priorities - 1) end;
    end if;
    return case when priorities > 1 then format(', null, %s', priority) else '' end;
end $$;
