-- send_direct takes a payload; send_element takes an element, as it did.
drop function if exists trunkline.send_direct(text, bytea, jsonb);
