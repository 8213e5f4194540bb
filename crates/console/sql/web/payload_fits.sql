-- Fails unless the text is a payload of this type. Enqueues nothing.
select ($1::text)::{type} is null
