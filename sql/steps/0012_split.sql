-- It has a parameter more.
do $$
declare
    q trunkline.queue;
begin
    for q in select * from trunkline.queue loop
        execute format('drop function if exists trunkline.%I(bigint, int[])', 'do_split_' || q.name);
    end loop;
end $$;
