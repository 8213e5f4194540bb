-- Takes up to n messages. The last row has no id where something due was left alone because it must be cut first. Whoever
-- may have to put them back keeps what their rows had in columns that users added.
create or replace function trunkline.{do_take_}(n int, floor timestamptz default '-infinity', rows int default 1, cut bool default true, keep bool default false)
    returns table (id bigint, attempt int, size int, enqueued_at timestamptz, payload {type}[], metadata jsonb[], released int, error text, own jsonb)
    language plpgsql {planner} as $f$
#variable_conflict use_variable
declare
    at record;
    due timestamptz := floor;
    next_id bigint := 0;
begin
    while n > 0 loop
        if cut then
            select g.* into at from trunkline.{do_gather_}(n, rows, true, 0, due, next_id) g;
        else
            begin
                select g.* into at from trunkline.{do_gather_}(n, rows, false, 0, due, next_id) g;
            exception when sqlstate 'TL000' then
                rows := sqlerrm::int;
                continue when rows > 0;
                return query select null::bigint, 0, 0, null::timestamptz, null::{type}[], null::jsonb[], 0, null::text, null::jsonb;
                return;
            end;
        end if;
        exit when at.got = 0;
        return query
            with gone as (
                delete from trunkline.{queue_} q using unnest(at.tids) with ordinality d(tid, nr)
                where q.ctid = d.tid
                returning d.nr, q.id, q.attempt, q.size, q.enqueued_at, q.payload, q.metadata, q.released, q.error,
                          case when keep then {own} end as own)
            select g.id, g.attempt, g.size, g.enqueued_at, g.payload, g.metadata, g.released, g.error, g.own from gone g order by g.nr;
        n := n - at.got;
        rows := least(n, 1 + n::bigint * cardinality(at.tids) / at.got);
        due := at.due;
        next_id := at.id;
    end loop;
end $f$;
