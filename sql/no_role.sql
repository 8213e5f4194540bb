-- The first of these roles that does not exist.
select role from unnest($1::text[]) role where not exists (select from pg_catalog.pg_roles r where r.rolname = role) limit 1
