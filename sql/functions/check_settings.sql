create or replace function trunkline.check_settings(
    queue text, max_attempts int, lease interval, max_batch int, priorities int, aging interval, partitions int, per_key int) returns void
    language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
-- Fails, with a hint, if the settings of a queue are out of bounds or exclude each other. A lease
-- must be within the bounds of check_lease on every day, and a comparison counts 30 days per month.
declare
    wrong text := (
        select string_agg(format('%s is %s', s.name, coalesce(s.value, 'null')), ', ' order by s.nr)
        from (values
            (1, 'max_attempts', max_attempts::text, max_attempts >= 1), (2, 'lease', lease::text, lease > '0' and lease <= '365 days' and (
                select bool_and(d + lease > d and d + lease <= d + interval '367 days') from generate_series(timestamp '2003-01-01', '2004-12-31', '1 day') d)),
            (3, 'max_batch', max_batch::text, max_batch between 1 and 1024), (4, 'priorities', priorities::text, priorities between 1 and 10),
            (5, 'aging', aging::text, aging > '0' and aging <= '36500 days'), (6, 'partitions', partitions::text, partitions between 0 and 256),
            (7, 'per_key', per_key::text, per_key >= 1)) s(nr, name, value, is_good)
        where s.is_good is not true);
begin
    if wrong is not null then
        raise exception 'the settings of queue % are out of bounds: %', quote_literal(queue), wrong
            using errcode = 'invalid_parameter_value',
                  hint = 'max_attempts is at least 1, lease more than 0 and at most 365 days or a year, max_batch 1 to 1024, priorities 1 to 10, '
                         'aging more than 0 and at most 36500 days, partitions 0 to 256, per_key at least 1.';
    elsif partitions > 0 and priorities > 1 then
        raise exception 'queue % cannot have both keys and priorities', quote_literal(queue)
            using errcode = 'invalid_parameter_value', hint = 'Set either partitions or priorities, or create two queues.';
    end if;
end $$;
