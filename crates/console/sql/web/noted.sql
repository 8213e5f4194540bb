-- Runs an action and writes its entry, in one statement and so in one transaction. An action that fails leaves no entry. If a form is sent twice, the
-- second entry has the same token: it fails, and the action is undone with it.
with did as materialized ({deed}),
noted as (insert into trunkline.audit (who, action, queue, what, token, affected)
          select $1::text, $2::text, {of}, $4::text, $5::text::uuid, coalesce(pg_catalog.max(n), 0) from did)
select coalesce(pg_catalog.max(n), 0)::bigint, {id} from did
