create or replace function trunkline.prune(queue text, age interval) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Deletes messages that were archived longer ago than age; returns how many.
--
-- Example:
--     select trunkline.prune('emails', '30 days');
declare
    count bigint;
begin
    perform trunkline.check_queue(queue);
    if age is null or age < '0' then
        raise exception 'an age of % is out of bounds', coalesce(age::text, 'null')
            using errcode = 'invalid_parameter_value', hint = 'An age is at least zero; zero deletes the whole archive.';
    end if;
    execute format('select trunkline.%I($1)', 'do_prune_' || queue) into count using age;
    return count;
end $$;
