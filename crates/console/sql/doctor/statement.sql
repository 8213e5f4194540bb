-- The beginning of the last statement of a session `a`, without the comments before it, because statements of the library begin with a comment.
left(regexp_replace(coalesce(nullif(regexp_replace(a.query, '^(?:\s|--[^\n]*(?:\n|$)|/\*(?:[^*]|\*+[^*/])*\*+/)*', ''), ''), a.query), '\s+', ' ', 'g'), 200)
