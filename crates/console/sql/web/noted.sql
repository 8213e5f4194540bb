-- Runs an action and adds its audit entry, in one statement and so in one transaction. A failed action leaves no entry. If its form has acted before, an entry
-- with the form's token exists, so the statement fails and the action is undone.
with did as materialized ({deed}),
noted as (insert into trunkline.audit (who, action, queue, what, token, affected)
          select $1::text, $2::text, {of}, $4::text, $5::text::uuid, coalesce(pg_catalog.max(n), 0) from did)
select coalesce(pg_catalog.max(n), 0)::bigint, {id} from did
