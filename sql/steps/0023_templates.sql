-- A template belongs to a part, and a queue has the templates of its parts: see trunkline.parts_of. The migration fills the table.
drop function if exists trunkline.fill(text, text);
drop table trunkline.template;
create table trunkline.template (
    part text,
    name text,
    text text not null,
    constraint pk_template primary key (part, name)
);
