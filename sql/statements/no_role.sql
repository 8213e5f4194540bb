-- Returns the first of these roles that does not exist.
select role from pg_catalog.unnest($1::pg_catalog.text[]) role where not exists (select from pg_catalog.pg_roles r where r.rolname operator(pg_catalog.=) role::pg_catalog.name) limit 1
