-- The server writes the payload as text, in a form that every session reads alike. The queue's own column determines the type.
select trunkline.set_schedule($1, $2, $3, trunkline.written((coalesce($4, (select payload from trunkline.{queue_} limit 0)))[1]), $5, $6, $7, $8, $9)
