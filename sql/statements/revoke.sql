-- All or none; null is every queue.
select trunkline.revoke_rights(pg_catalog.quote_ident(role)::pg_catalog.regrole, $2) from pg_catalog.unnest($1::pg_catalog.text[]) role
