-- A form of the console acts once: the entry of what it did has its token, and no other entry can have it.
alter table trunkline.audit add column token uuid constraint audit_token unique;
