create or replace function trunkline.page_by_due(queue text, of anyelement, after_due timestamptz, after_id bigint, n bigint)
    returns setof anyelement language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off as $$
-- Returns a page of a queue's rows after a given row, in the order of the due times. of: a null of the row type of the
-- queue's table.
declare
    priorities int := (select q.priorities from trunkline.queue q where q.name = queue);
begin
    -- Priorities are the first column of the index.
    return query execute format(case when priorities > 1 then
        'select o.* from generate_series(0, $4 - 1) l(lane),
             lateral (select q.* from %s q
                      where q.lane = l.lane and (q.due_at, q.id + 0) > ($1, $2) order by q.due_at, q.id + 0 limit $3) o
         order by o.due_at, o.id limit $3'
    else
        'select q.* from %s q where (q.due_at, q.id + 0) > ($1, $2) order by q.due_at, q.id + 0 limit $3' end, pg_typeof(of))
        using after_due, after_id, n, priorities;
end $$;
