-- Roles and what they do, all or none; null is every queue.
select trunkline.grant_rights(quote_ident(g.role)::regrole, g.kind, $3) from unnest($1::text[], $2::text[]) g(role, kind)
