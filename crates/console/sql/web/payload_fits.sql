-- Fails unless the text is a valid payload of this type. Enqueues nothing.
select ($1::text)::{type} is null
