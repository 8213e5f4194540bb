use super::*;

#[test]
fn torn_history_is_read_up_to_the_tear() {
    let whole = |op, said| serde_json::to_string(&Line { at: 10 + op, op, said }).expect("a line") + "\n";
    let mut text = whole(1, Said::Invoked(Call::new(Verb::Lease, "least").n(3).ms(2000)));
    text += &whole(1, Said::got(vec![(1024, 1, 77)]));
    text += &whole(2, Said::Invoked(Call::new(Verb::Ack, "least").named(vec![(1024, 1)])));
    let torn = whole(2, Said::ok());
    text += &torn[..torn.len() / 2];
    let ops = read("leaser-0.0", &text).expect("a history");
    assert_eq!(ops.iter().map(|op| op.outcome).collect::<Vec<_>>(), [Outcome::Ok, Outcome::Unknown]);
    assert_eq!((ops[0].began, ops[0].ended, &*ops[0].got), (11, 11, &[(1024, 1, 77)][..]));
    assert_eq!((ops[1].ended, &*ops[1].name()), (Micros::MAX, "leaser-0.0:2"));
}

#[test]
fn a_line_that_is_none_is_named() {
    assert!(read("x", "{}\n{}\n").is_err_and(|error| error.contains("history of x")));
}
