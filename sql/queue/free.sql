create or replace function trunkline.{do_free_}()
    returns trigger language plpgsql {planner} as $f$
-- The function of a trigger on the queue's table. Whatever the verb, a message ends by being deleted from this table, and in no other way; so its key
-- becomes free in the same transaction. Keys that are kept for a time stay. Only for queues with uniqueness.
begin
    if tg_op = 'TRUNCATE' then
        delete from trunkline.{unique_} u where u.until is null;
    else
        delete from trunkline.{unique_} u where u.ctid = any (array(
            select k.tid from gone g,
                 lateral (select h.ctid as tid from trunkline.{unique_} h
                          where h.id >= g.id and h.id < g.id + g.size and h.until is null offset 0) k));
    end if;
    return null;
end $f$;
