-- Announces this consumer: from now on, one message may be sent to it directly.
insert into trunkline.waiting (consumer, queue, alive) values ($1, $2, $3) on conflict (consumer) do update set alive = $3
