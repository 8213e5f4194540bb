-- What this database is among several that hold queues of the same names. One row. Ids of messages begin with the number there, so it
-- must neither change nor depend on where the server is: it goes along with a backup, a standby and an upgrade.
-- Of a database that was copied to be another stripe: update trunkline.stripe set number = default;
create table trunkline.stripe (
    number int not null default ('x' || left(gen_random_uuid()::text, 8))::bit(32)::int,
    drains bool not null default false,
    one    bool not null default true constraint pk_stripe primary key constraint stripe_one check (one)
);
insert into trunkline.stripe default values;

-- Roles that have rights already.
do $$
declare
    name text;
begin
    for name in select distinct a.role from trunkline.granted a join pg_roles r on r.rolname = a.role loop
        execute format('grant select on trunkline.stripe to %I', name);
    end loop;
end $$;
