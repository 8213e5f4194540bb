//! Declares the tables for diesel.

diesel::table! {
    roster (id) {
        id -> Int8,
        team -> Int4,
        name -> Text,
        email -> Text,
        age -> Int4,
        score -> Float8,
        active -> Bool,
    }
}

diesel::table! {
    person (id) {
        id -> Int8,
        name -> Text,
        email -> Text,
        age -> Int4,
        score -> Float8,
        active -> Bool,
    }
}

diesel::table! {
    entry (n) {
        n -> Int8,
        word -> Text,
    }
}

diesel::table! {
    account (id) {
        id -> Int8,
        balance -> Int8,
    }
}
