-- Grants rights to several roles, all or none. A null queue means all queues.
select trunkline.grant_rights(pg_catalog.quote_ident(g.role)::pg_catalog.regrole, g.kind, $3) from rows from (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[])) g(role, kind)
