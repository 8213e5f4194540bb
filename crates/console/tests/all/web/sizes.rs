//! The sizes of payloads on the pages.

use super::Site;
use crate::browser::get;

/// The text of a value of bytea has two hexadecimal digits for each byte.
#[tokio::test(flavor = "multi_thread")]
async fn size_of_bytes_is_not_that_of_their_digits() {
    let site = Site::new().await;
    site.sql.batch_execute("create domain public.blob as bytea").await.expect("created");
    for (name, kind) in [("raw", "bytea"), ("blobs", "public.blob"), ("texts", "text")] {
        // Five bytes, or a text of twelve.
        let fill = format!(
            "select trunkline.create_queue('{name}', '{kind}');
             insert into trunkline.queue_{name} (size, payload) values (1, array['\\x0001020304'::{kind}]);
             insert into trunkline.dead_{name} (id, enqueued_at, attempt, error, payload) values (1, now(), 1, 'e', '\\x0001020304')"
        );
        site.sql.batch_execute(&fill).await.expect("filled");
        let expected = if name == "texts" { "12 bytes" } else { "5 bytes" };
        let id = site.number(&format!("select id from trunkline.queue_{name}")).await;
        for (path, place) in [
            ("messages".to_owned(), "data-label=\"size\">"),
            ("dead".to_owned(), "data-label=\"size\">"),
            (format!("messages/{id}"), "<dt>size of the payload</dt><dd>"),
            ("messages/1".to_owned(), "<dt>size of the payload</dt><dd>"),
        ] {
            let page = get(site.address, &format!("/queues/{name}/{path}")).await;
            assert_eq!(page.text_after(place), expected, "{name}/{path}");
        }
    }
    site.end().await;
}
