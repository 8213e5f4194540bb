-- Revokes the rights of several roles, all or none. A null queue means all queues.
select trunkline.revoke_rights(pg_catalog.quote_ident(role)::pg_catalog.regrole, $2) from pg_catalog.unnest($1::pg_catalog.text[]) role
