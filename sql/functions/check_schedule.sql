create or replace function trunkline.check_schedule(name text, expression text, zone text, missed text) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp set standard_conforming_strings = on as $$
-- Fails, with a hint, unless a schedule can have these settings. Whether the fields of an expression are within their
-- bounds is checked only by the processes that make the ticks.
begin
    if name is null or name !~ '^[a-z][a-z0-9_.-]{0,47}$' then
        raise exception 'a schedule cannot be named %', coalesce(quote_literal(name), 'NULL')
            using errcode = 'invalid_name',
                  hint = 'A name has 1 to 48 characters: a lower-case letter, then a-z, 0-9, "_", "." or "-".';
    elsif expression is null or expression !~*
        '^\s*(@(hourly|daily|midnight|weekly|monthly|yearly|annually)|every(\s+[0-9]{1,9})?\s+(second|minute|hour|day)s?|(\S+\s+){4,5}\S+)\s*$' then
        raise exception 'invalid schedule expression %', coalesce(quote_literal(expression), 'NULL')
            using errcode = 'invalid_parameter_value',
                  hint = 'Pass five cron fields (0 3 * * *), six with seconds first, a name such as @hourly, or an interval: every 90 seconds.';
    elsif missed is null or missed not in ('skip', 'once', 'each') then
        raise exception 'missed must be skip, once or each, not %', coalesce(quote_literal(missed), 'NULL')
            using errcode = 'invalid_parameter_value', hint = 'Pass skip, once or each.';
    end if;
    if zone is null then
        raise exception 'schedule % has no time zone', quote_literal(name) using errcode = 'null_value_not_allowed',
            hint = 'Pass the name of a time zone, such as Europe/Berlin or UTC.';
    end if;
    -- PostgreSQL also reads offsets, abbreviations and POSIX rules; the processes that make the ticks read only names. The
    -- list of names takes the server about 0.1 s, so it is not read for a zone in which a process has already computed a
    -- tick of the schedule.
    if zone <> 'UTC' and not exists (select from trunkline.schedule s where s.name = check_schedule.name and s.zone = check_schedule.zone and s.placed)
       and not exists (select from pg_timezone_names z where lower(z.name) = lower(zone) and z.name !~ '^(posix/|right/|localtime$|posixrules$)') then
        raise exception 'there is no time zone %', quote_literal(zone) using errcode = 'invalid_parameter_value',
            hint = 'Pass the name of a time zone, such as Europe/Berlin or UTC. Offsets and abbreviations are no names; names are in pg_timezone_names.';
    end if;
end $$;
