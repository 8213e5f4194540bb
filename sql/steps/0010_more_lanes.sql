-- A queue with keys can get more lanes, which have numbers of their own: see alter_queue.
alter table trunkline.queue add column first_lane smallint not null default 0;
-- It has a parameter more.
drop function if exists trunkline.alter_queue(text, int, interval, int, interval, int);
-- The trigger is told the lanes that there are.
do $$
declare
    q trunkline.queue;
begin
    for q in select * from trunkline.queue where lanes > 0 loop
        execute format('drop trigger keep_place on trunkline.%I', 'queue_' || q.name);
        execute format('create trigger keep_place before insert on trunkline.%I for each row execute function trunkline.keep_place(0, %s)',
                       'queue_' || q.name, q.lanes);
    end loop;
end $$;
