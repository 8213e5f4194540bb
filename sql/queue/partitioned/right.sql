create or replace function trunkline.{do_right_}(how int, ahead interval default null)
    returns bigint language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan set row_security = on as $f$
-- Repairs times that were written while a clock was ahead: each time that is later than it could be
-- with a correct clock. Skips rows that another transaction has locked, but waits for the lock of a
-- limit's bucket. Returns the number of messages that it changed, except leases that only follow
-- the repair of their partition. ahead: how far the clock was ahead, if the caller knows. A
-- partition that was served and a message that was enqueued in the future also show it, and so does
-- the queue's stored floor. Only a session that locks that floor subtracts ahead, and it corrects
-- the floor, so that no other session subtracts the same lead again. how: 0 repairs only if
-- do_wrong_ finds such a time; 1 always repairs; 2 also shortens leases that last longer than the
-- queue's setting.
--  - A message that was enqueued in the future counts as enqueued now, and its delay keeps its
--    length.
--  - A lease that ends more than 550 days from now (1.5 times the longest) lasts as long as the
--    queue's setting.
--  - If a message that failed or was released is due more than half of ahead from now, it becomes
--    due earlier by ahead. If it is due more than 550 days from now, it is due now. Without ahead
--    its time may be intended.
--  - A partition is held for as long as was set when it was last served, and so are its leases. Its
--    floor is below all rows again.
--  - A key rests as long as its first message has to wait, or as long as a worker lets it rest.
--  - A bucket that was filled in the future counts as filled now.
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
    -- a partition is held for 1.5 times the longest lease, and its leases may last as long
    longest constant interval := interval '8808 hours' * 1.5; -- see check_lease
    -- With a rate, a key rests at most until a worker's maximum number of messages of the key, plus
    -- the contents of its bucket, may have started. Without a rate it rests for a moment.
    longest_rest constant interval := case when {key_per_second}::float8 is null then interval '1 second'
        else least((64 + {key_burst}::float8) / {key_per_second}::float8, 31536000) * interval '1 second' end;
    kept timestamptz;
    messages bigint;
begin
    if how = 0 and not trunkline.{do_wrong_}() then
        return 0;
    end if;
    clock := trunkline.clock();
    if has_column_privilege('trunkline.floor', 'reached', 'update') and has_column_privilege('trunkline.floor', 'shown', 'update') then
        -- Waits for no lock, because the caller may have locked rows that the other session needs.
        select greatest(f.reached, f.shown) into kept from trunkline.floor f where f.queue = {literal} for update skip locked;
    end if;
    if kept is null then
        ahead := null;
    else
        -- A session that has just committed may have served a partition after the clock was read.
        ahead := greatest(ahead, case when kept > clock + interval '1 minute' then kept - clock end,
                          (select max(h.served_at) - clock from trunkline.{lane_} h
                           where h.lane >= 0 and h.served_at > clock_timestamp() + interval '1 s'),
                          (select max(q.enqueued_at) - clock from trunkline.{queue_} q
                           where q.due_at > clock and q.enqueued_at > clock_timestamp() + interval '1 minute'));
        update trunkline.floor f set reached = case when f.reached <= clock then f.reached else '-infinity' end, shown = clock
        where f.queue = {literal} and kept > clock;
    end if;
    with late as materialized (
        select q.ctid as tid,
               case when q.attempt > 0 and q.error is null then
                        least(case when q.enqueued_at > clock then q.due_at - (q.enqueued_at - clock)
                                   when q.due_at > clock + longest then clock + {lease} else q.due_at end,
                              case when how = 2 then clock + {lease} else 'infinity' end)
                    when q.enqueued_at > clock then greatest(q.due_at - (q.enqueued_at - clock), clock)
                    when q.due_at - ahead <= clock + longest then greatest(q.due_at - ahead, clock)
                    else clock end as due_at
        from trunkline.{queue_} q
        where q.due_at > clock
          and (q.enqueued_at > clock
               or q.attempt > 0 and q.due_at > clock + case when q.error is null then longest else least(longest, ahead / 2) end
               or how = 2 and q.attempt > 0 and q.error is null and q.due_at > clock + {lease})
        order by q.id for update skip locked
    ), put as (
        update trunkline.{queue_} q
        set due_at = a.due_at, enqueued_at = least(q.enqueued_at, clock),
            place = case when q.enqueued_at > clock and q.place > clock then greatest(q.place - (q.enqueued_at - clock), clock) else q.place end
        from late a where q.ctid = a.tid
        returning q.size)
    select coalesce(sum(p.size), 0) into messages from put p;
    with late as materialized (
        select h.lane, h.served_at - clock as ahead from trunkline.{lane_} h where h.lane >= 0 and h.served_at > clock_timestamp() + interval '1 s'
        order by h.lane for update skip locked)
    update trunkline.{lane_} h
    set served_at = clock, floor = '-infinity', held_until = h.held_until - a.ahead,
        wanted_until = case when h.wanted_until > clock then h.wanted_until - a.ahead else h.wanted_until end,
        starts_until = case when h.starts_until > clock then h.starts_until - a.ahead else h.starts_until end,
        empty_at = case when h.empty_at > clock then h.empty_at - a.ahead else h.empty_at end
    from late a where h.lane = a.lane;
    update trunkline.{queue_} q set due_at = o.due_at
    from (select q.ctid as tid, h.held_until as due_at from trunkline.{queue_} q join trunkline.{lane_} h on h.lane = q.lane
          where q.due_at > clock and q.attempt > 0 and q.error is null and h.held_until > clock and q.due_at > h.held_until
          order by q.id for update of q skip locked) o
    where q.ctid = o.tid;
    update trunkline.{line_} l set until = o.until
    from (select l.lane, l.key, greatest(clock + longest_rest, (
                     select max(q.due_at) from trunkline.{queue_} q
                     where q.lane = l.lane and q.line = l.key and q.error is not null and q.due_at > clock)) as until
          from trunkline.{line_} l where l.until > clock + longest_rest for update of l skip locked) o
    where l.lane = o.lane and l.key = o.key and l.until > o.until;
    if {limited} then
        update trunkline.bucket b set filled_at = clock where b.queue = {literal} and b.filled_at > clock;
    end if;
    if messages > 0 then
        perform pg_notify({channel}, '');
    end if;
    return messages;
end $f$;
