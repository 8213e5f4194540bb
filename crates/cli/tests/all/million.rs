//! A million lines in and out, in order, with little memory.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, BufWriter, Write},
    path::Path,
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use crate::fixture::{Folder, Trunkline, WITHOUT_RELAYS};

const LINES: usize = 1_000_000;
/// The limits in kilobytes of a program without relays, and of one with them: its allocator keeps
/// more memory.
const LIMITS: (u64, u64) = (64 << 10, 160 << 10);

/// Writes numbered words of the machine's dictionary, repeatedly. Without a dictionary, it invents
/// words. Some lines are empty, and some are not valid text.
fn write_lines(path: &Path) {
    let dictionary = fs::read("/usr/share/dict/words").unwrap_or_default();
    let mut words: Vec<Vec<u8>> = dictionary.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    if words.len() < 1000 {
        words = (0..1000).map(|n: usize| b"queue".repeat(n % 17)).collect();
    }
    let mut file = BufWriter::new(File::create(path).expect("a file can be made"));
    for (number, word) in (0..LINES).zip(words.iter().cycle()) {
        let written = match number % 1000 {
            1 => file.write_all(b"\n"),
            2 => file.write_all(b"\xff\x00\r\n"),
            _ => write!(file, "{number} ").and_then(|()| file.write_all(word)).and_then(|()| file.write_all(b"\n")),
        };
        written.expect("there is room for the file");
    }
    file.flush().expect("there is room for the file");
}

/// Returns a process' peak memory in kilobytes, once the process has ended.
fn watch_memory(child: &Child) -> thread::JoinHandle<u64> {
    let path = format!("/proc/{}/status", child.id());
    thread::spawn(move || {
        let mut most = 0;
        // Ends when the process has ended, because its status then has no such line.
        while let Some(now) = fs::read_to_string(&path).ok().and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().to_owned();
            line.strip_suffix(" kB")?.parse::<u64>().ok()
        }) {
            most = most.max(now);
            thread::sleep(Duration::from_millis(2));
        }
        most
    })
}

#[test]
#[cfg(target_os = "linux")]
fn million_lines_come_out_identical_and_take_little_memory() {
    let trunkline = Trunkline::with_queue(&[]);
    let folder = Folder::new();
    let path = folder.join("lines");
    write_lines(&path);
    let count = BufReader::new(File::open(&path).expect("it was written")).split(b'\n').count();
    assert!(count >= LINES);

    let mut enqueue = trunkline.command(&["enqueue", "q", "--lines", path.to_str().expect("its name is text")]);
    let child = enqueue.stdout(Stdio::piped()).spawn().expect("the program runs");
    let memory = watch_memory(&child);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{count}\n"));
    let in_kb = memory.join().expect("it watches");

    let mut dequeue = trunkline.command(&["dequeue", "q"]);
    let mut child = dequeue.stdout(Stdio::piped()).spawn().expect("the program runs");
    let memory = watch_memory(&child);
    let mut came = BufReader::with_capacity(1 << 20, child.stdout.take().expect("it is piped"));
    let mut went = BufReader::with_capacity(1 << 20, File::open(&path).expect("it was written"));
    let mut compared = 0;
    loop {
        let (out, expected) = (came.fill_buf().expect("it can be read"), went.fill_buf().expect("it can be read"));
        let both = out.len().min(expected.len());
        assert!(out[..both] == expected[..both], "another byte after {compared}");
        assert_eq!(out.is_empty(), expected.is_empty(), "after {compared} bytes one of them ends");
        if both == 0 {
            break;
        }
        came.consume(both);
        went.consume(both);
        compared += both;
    }
    assert!(child.wait().expect("it ends").success());
    let out_kb = memory.join().expect("it watches");
    println!("peak memory: {in_kb} kB in, {out_kb} kB out");
    let has_relays = cfg!(feature = "trunkline-relay") && std::env::var_os(WITHOUT_RELAYS).is_none();
    let limit = if has_relays { LIMITS.1 } else { LIMITS.0 };
    assert!(0 < in_kb && in_kb < limit, "{in_kb} kB in");
    assert!(0 < out_kb && out_kb < limit, "{out_kb} kB out");
    assert_eq!(trunkline.json(&["stats", "--json"])[0]["messages"], 0);
}
