//! A connection between two processes that can be cut. During a cut no byte passes, and neither
//! side receives an error.

use std::{
    collections::HashSet,
    io::Result,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// The startup parameter with the client's name. It is among the first bytes that a client sends to
/// PostgreSQL.
const NAME: &[u8] = b"application_name\0";
const CHUNK: usize = 64 << 10;

/// The connections that are currently cut.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cut {
    pub all: bool,
    /// The `application_name` of each client of PostgreSQL that is cut.
    pub named: HashSet<String>,
}

/// Forwards connections to one address. During a cut it keeps the bytes that were sent, as TCP does
/// when a network drops packets. It forwards these bytes once the cut ends.
pub struct Proxy {
    pub port: u16,
    cut: watch::Sender<Cut>,
}

impl Proxy {
    pub async fn start(to: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (cut, is_cut) = watch::channel(Cut::default());
        tokio::spawn(async move {
            loop {
                // Tries again after an error, which means that too many files are open.
                let Ok((client, _)) = listener.accept().await else { continue };
                tokio::spawn(pass(client, to, is_cut.clone()));
            }
        });
        Ok(Self { port, cut })
    }

    pub fn cut(&self, cut: Cut) {
        self.cut.send_replace(cut);
    }
}

async fn pass(client: TcpStream, to: SocketAddr, mut is_cut: watch::Receiver<Cut>) {
    // A client that connects during a cut waits until the cut ends, or gives up.
    if is_cut.wait_for(|cut| !cut.all).await.is_err() {
        return;
    }
    let Ok(server) = TcpStream::connect(to).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let name = Arc::new(Mutex::new(None));
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    tokio::join!(
        copy(from_client, to_server, is_cut.clone(), name.clone(), true),
        copy(from_server, to_client, is_cut, name, false),
    );
}

async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut is_cut: watch::Receiver<Cut>,
    name: Arc<Mutex<Option<String>>>,
    tells: bool,
) {
    let called_now = || name.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut chunk = vec![0; CHUNK];
    while let Ok(length) = from.read(&mut chunk).await {
        if tells && called_now().is_none() {
            *name.lock().unwrap_or_else(PoisonError::into_inner) = called(&chunk[..length]);
        }
        let open = |cut: &Cut| !cut.all && !called_now().is_some_and(|name| cut.named.contains(&name));
        if is_cut.wait_for(open).await.is_err() || length == 0 || to.write_all(&chunk[..length]).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}

fn called(bytes: &[u8]) -> Option<String> {
    let at = bytes.windows(NAME.len()).position(|window| window == NAME)? + NAME.len();
    let name = bytes[at..].split(|byte| *byte == 0).next()?;
    String::from_utf8(name.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn cut_client_receives_nothing_until_the_cut_is_mended() {
        let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let proxy = Proxy::start(server.local_addr().expect("bound")).await.expect("started");
        let mut client = TcpStream::connect(("127.0.0.1", proxy.port)).await.expect("connected");
        client.write_all(b"....user\0x\0application_name\0node2\0\0").await.expect("sent");
        let (mut there, _) = server.accept().await.expect("passed on");
        let mut said = [0; 37];
        there.read_exact(&mut said[..35]).await.expect("passed on");
        proxy.cut(Cut { named: HashSet::from(["node2".to_owned()]), ..Cut::default() });
        there.write_all(b"ping").await.expect("sent");
        let mut heard = [0; 4];
        // No test can show that nothing arrives. The rest of this test shows that the proxy kept
        // the bytes.
        tokio::select! {
            biased;
            _ = client.read(&mut heard) => panic!("the cut let it through"),
            () = tokio::task::yield_now() => {}
        }
        proxy.cut(Cut::default());
        client.read_exact(&mut heard).await.expect("mended");
        assert_eq!(&heard, b"ping");
    }
}
