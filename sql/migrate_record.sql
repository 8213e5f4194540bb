-- With the step, in its transaction.
insert into trunkline.migration (version, name, functions) values ($1, $2, $3) on conflict (version) do update set functions = excluded.functions
