create or replace function trunkline.{do_peek_}(after_due timestamptz, after_id bigint, n bigint)
    returns setof trunkline.{queue_} language plpgsql {planner} as $f$
-- Reads a page of rows after a given row, in the order of the due times.
#variable_conflict use_variable
begin
    if {laned} then
        return query
            select o.* from generate_series(0, {lanes} - 1) l(lane),
                 lateral (select q.* from trunkline.{queue_} q
                          where q.lane = l.lane and (q.due_at, q.id + 0) > (after_due, after_id)
                          order by q.due_at, q.id + 0 limit n) o
            order by o.due_at, o.id limit n;
    else
        return query select q.* from trunkline.{queue_} q
            where (q.due_at, q.id + 0) > (after_due, after_id) order by q.due_at, q.id + 0 limit n;
    end if;
end $f$;
