-- Runs after the step, in the same transaction.
insert into trunkline.version (version, name, functions, oldest) values ($1, $2, $3, $4)
on conflict (version) do update set functions = excluded.functions, oldest = excluded.oldest
