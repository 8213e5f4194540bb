-- Fails, with the reason, unless the queue accepts a message like this one. Enqueues nothing.
select (trunkline.payload_as($2::text, (null::trunkline.{queue}).payload))[1] is null, trunkline.check_metadata($3::text::jsonb) is null, trunkline.check_priority($1::text, $4::int) is null,
       trunkline.check_keys($1::text, case when $5::text is not null then array[$5::text] end, 1) is null
