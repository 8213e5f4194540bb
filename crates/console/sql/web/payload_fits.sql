-- Errs unless the text is a payload of this type. Nothing is enqueued.
select ($1::text)::{type} is null
