-- All or none; null is every queue.
select trunkline.revoke_rights(quote_ident(role)::regrole, $2) from unnest($1::text[]) role
