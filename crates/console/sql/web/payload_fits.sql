-- Fails unless the text is a payload of this type. Enqueues nothing.
select (trunkline.payload_as($1::text, null::{type}[]))[1] is null
