-- An action and its entry, in one statement and so in one transaction. An action that fails leaves no entry.
with did as materialized ({deed}),
noted as (insert into trunkline.audit (who, action, queue, what, affected)
          select $1::text, $2::text, nullif($3::text, ''), $4::text, coalesce(max(n), 0) from did)
select coalesce(max(n), 0)::bigint from did
