-- Leases up to n messages, each of them charged with an attempt. With apart, a message whose lease ran out comes alone.
create or replace function trunkline.{do_lease_}(
        n int, lease interval default null, floor timestamptz default '-infinity', rows int default 1, apart bool default false)
    returns table (id bigint, attempt int, size int, enqueued_at timestamptz, due_at timestamptz, payload {type}[], metadata jsonb[],
                   ran_out bool, released int)
    language plpgsql {planner} as $f$
#variable_conflict use_variable
declare
    term interval := trunkline.check_lease(coalesce(lease, {lease}));
    way int := apart::int;
    at record;
    due timestamptz := floor;
    next_id bigint := 0;
begin
    while n > 0 loop
        select g.* into at from trunkline.{do_gather_}(n, rows, true, way, due, next_id) g;
        exit when at.got = 0;
        return query
            with leased as (
                update trunkline.{queue_} q
                set due_at = trunkline.clock() + term, attempt = q.attempt + 1, error = null
                from unnest(at.tids) with ordinality d(tid, nr)
                where q.ctid = d.tid
                returning d.nr, q.id, q.attempt, q.size, q.enqueued_at, q.due_at, q.payload, q.metadata, q.released)
            select l.id, l.attempt, l.size, l.enqueued_at, l.due_at, l.payload, l.metadata, at.ran_out, l.released
            from leased l order by l.nr;
        exit when at.ran_out;
        n := n - at.got;
        rows := least(n, 1 + n::bigint * cardinality(at.tids) / at.got);
        way := 2 * way;
        due := at.due;
        next_id := at.id;
    end loop;
end $f$;
