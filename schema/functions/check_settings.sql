-- The settings of a queue, if they are within their bounds.
create or replace function trunkline.check_settings(queue text, max_attempts int, lease interval, max_batch int) returns void
    language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    if (max_attempts >= 1 and lease > '0' and lease <= '365 days' and max_batch between 1 and 1024) is not true then
        raise exception 'the settings of queue % are out of bounds', quote_literal(queue)
            using errcode = 'invalid_parameter_value',
                  hint = 'max_attempts is at least 1, lease more than 0 and at most 365 days, max_batch 1 to 1024.';
    end if;
end $$;
