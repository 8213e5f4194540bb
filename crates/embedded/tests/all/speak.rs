use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Runs one statement as a client does, and returns the first value of its first row.
pub fn ask(socket_dir: &Path, port: u16, statement: &str) -> Option<String> {
    exchange(UnixStream::connect(socket_dir.join(format!(".s.PGSQL.{port}"))).unwrap(), statement)
}

/// Runs a statement like [`ask`], on an open connection.
pub fn exchange(mut stream: impl Read + Write, statement: &str) -> Option<String> {
    let mut hello = 196_608_u32.to_be_bytes().to_vec();
    hello.extend(b"user\0trunkline\0database\0postgres\0\0");
    send(&mut stream, None, &hello);
    until_ready(&mut stream);
    send(&mut stream, Some(b'Q'), format!("{statement}\0").as_bytes());
    until_ready(&mut stream)
}

fn send(stream: &mut impl Write, kind: Option<u8>, body: &[u8]) {
    let mut message: Vec<u8> = kind.into_iter().collect();
    message.extend((body.len() as u32 + 4).to_be_bytes());
    message.extend(body);
    stream.write_all(&message).unwrap();
}

fn until_ready(stream: &mut impl Read) -> Option<String> {
    let mut value = None;
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes(head[1..].try_into().unwrap());
        let mut body = vec![0; length as usize - 4];
        stream.read_exact(&mut body).unwrap();
        match head[0] {
            b'Z' => return value,
            b'E' => panic!("{}", String::from_utf8_lossy(&body)),
            // The first two bytes are the number of values, the next four the length of the first
            // value.
            b'D' if value.is_none() => {
                let length = u32::from_be_bytes(body[2..6].try_into().unwrap()) as usize;
                value = Some(String::from_utf8(body[6..6 + length].to_vec()).unwrap());
            }
            _ => {}
        }
    }
}
