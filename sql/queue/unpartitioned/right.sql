create or replace function trunkline.{do_right_}(how int, ahead interval default null)
    returns bigint language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan set row_security = on as $f$
-- Repairs times that were written while a clock was ahead: each time that is later than it could be
-- with a correct clock. Skips rows that another transaction has locked, but waits for the lock of a
-- limit's bucket. Returns the number of messages that it changed. ahead: how far the clock was
-- ahead, if the caller knows. A message that was enqueued in the future also shows it. how: 0
-- repairs only if do_wrong_ finds such a time; 1 always repairs; 2 also shortens leases that last
-- longer than the queue's setting.
--  - A message that was enqueued in the future counts as enqueued now, and its delay keeps its
--    length.
--  - A lease that ends more than 367 days from now lasts as long as the queue's setting.
--  - If a message that failed or was released is due more than half of ahead from now, it becomes
--    due earlier by ahead. If it is due more than 367 days from now, it is due now. Without ahead
--    its time may be intended.
--  - A unique key keeps the length of its claim, counted from now. A bucket that was filled in the
--    future counts as filled now.
#variable_conflict use_variable
declare
    clock timestamptz := clock_timestamp();
    longest constant interval := '8808 hours'; -- see check_lease
    messages bigint;
begin
    if how = 0 and not trunkline.{do_wrong_}() then
        return 0;
    end if;
    clock := trunkline.clock();
    ahead := greatest(ahead, (select max(q.enqueued_at) - clock from trunkline.{queue_} q
                              where q.due_at > clock and q.enqueued_at > clock_timestamp() + interval '1 minute'));
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
        set due_at = a.due_at, enqueued_at = least(q.enqueued_at, clock)
        from late a where q.ctid = a.tid
        returning q.size)
    select coalesce(sum(p.size), 0) into messages from put p;
    if {unique} then
        update trunkline.{unique_} u set until = clock + (u.until - u.claimed_at), claimed_at = clock
        where u.key = any (array(select a.key from trunkline.{unique_} a where a.claimed_at > clock for update skip locked));
    end if;
    if {limited} then
        update trunkline.bucket b set filled_at = clock where b.queue = {literal} and b.filled_at > clock;
    end if;
    if messages > 0 then
        perform pg_notify({channel}, '');
    end if;
    return messages;
end $f$;
