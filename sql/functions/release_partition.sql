create or replace function trunkline.release_partition(queue text, holder bigint) returns bool
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Releases the partition of a holder, so that other consumers can lease it. Returns whether it is free. As long as one
-- of its messages is leased, the holder keeps it: end the lease, then call the function again. A partition that is
-- never released is free one and a half lease times after the last lease or extension.
--
-- Example:
--     select trunkline.release_partition('orders', 4711);
declare
    free bool;
begin
    perform trunkline.check_keyed(queue);
    if holder is null then
        raise exception 'a holder must not be null' using errcode = 'null_value_not_allowed',
            hint = 'Pass the holder for which trunkline.lease_partition leased the partition.';
    end if;
    execute format('select trunkline.%I(null, $1)', 'do_leave_' || queue) using holder;
    execute format('select not exists (select from trunkline.%I l where l.holder = $1 and l.held_until > clock_timestamp())', 'lane_' || queue)
        into free using holder;
    return free;
end $$;
