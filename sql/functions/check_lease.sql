create or replace function trunkline.check_lease(lease interval) returns interval
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Returns the duration of a lease; fails if it is out of bounds. Dequeues check the bounds themselves, and call this
-- function only to fail: Postgres does not inline a function with a SET clause, so a call would cost more than the
-- check. A comparison counts 30 days per month, so a lease with a negative number of months can be more than zero and
-- end in the past, and one with other months can last for longer than 365 days. 367 days of 24 hours are enough for a
-- year with a leap day and changes of the clock. do_right_ takes longer leases for wrong times.
begin
    if lease is null or lease <= '0' or lease > '365 days' or now() + lease <= now() or now() + lease > now() + interval '8808 hours' then
        raise exception 'a lease of % is out of bounds', coalesce(lease::text, 'null')
            using errcode = 'invalid_parameter_value', hint = 'A lease is more than zero and at most 365 days, or a year; months have the lengths that they have in the calendar.';
    end if;
    return lease;
end $$;
