-- Messages that were taken and are nobody's, under the same ids. With an error, so that nobody takes them for a lease that ran out.
insert into trunkline.{queue_} (id, enqueued_at, attempt, released, error, size, payload, metadata) values ($1, $2, $3, $4, coalesce($5, ''), $6, $7, $8)
