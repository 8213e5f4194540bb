-- It has a parameter more.
do $$
declare
    q trunkline.queue;
begin
    for q in select * from trunkline.queue where lanes > 0 loop
        execute format('drop function if exists trunkline.%I(int, int, timestamptz, int)', 'do_along_' || q.name);
    end loop;
end $$;
