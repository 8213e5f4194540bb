//! The calls of libpq that a transport needs.

#![allow(
    unsafe_code,
    reason = "functions of a library that is loaded at run time have the types that its documentation says, and take raw pointers; \
              nothing in std calls such"
)]

use std::{
    cell::Cell,
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    path::Path,
    ptr::{self, NonNull},
    sync::Arc,
};

use crate::{Answer, Outcome, Refusal, State};

const CONNECTION_OK: c_int = 0;
const EMPTY_QUERY: c_int = 0;
const COMMAND_OK: c_int = 1;
const TUPLES_OK: c_int = 2;
const FATAL_ERROR: c_int = 7;
const BINARY: c_int = 1;

type Raw = *mut c_void;
type Notice = extern "C" fn(*mut c_void, *const c_char);
type SendQuery = unsafe extern "C" fn(
    Raw,
    *const c_char,
    c_int,
    *const c_uint,
    *const *const c_char,
    *const c_int,
    *const c_int,
    c_int,
) -> c_int;

/// A loaded libpq. It stays loaded until the process ends, because it has registered exit handlers.
#[derive(Debug)]
pub struct Library {
    version: unsafe extern "C" fn() -> c_int,
    connect: unsafe extern "C" fn(*const c_char) -> Raw,
    reset: unsafe extern "C" fn(Raw),
    finish: unsafe extern "C" fn(Raw),
    status: unsafe extern "C" fn(Raw) -> c_int,
    transaction: unsafe extern "C" fn(Raw) -> c_int,
    complaint: unsafe extern "C" fn(Raw) -> *const c_char,
    on_notice: unsafe extern "C" fn(Raw, Notice, *mut c_void) -> *mut c_void,
    send: SendQuery,
    receive: unsafe extern "C" fn(Raw) -> Raw,
    clear: unsafe extern "C" fn(Raw),
    result: unsafe extern "C" fn(Raw) -> c_int,
    field: unsafe extern "C" fn(Raw, c_int) -> *const c_char,
    tag: unsafe extern "C" fn(Raw) -> *const c_char,
    affected: unsafe extern "C" fn(Raw) -> *const c_char,
    rows: unsafe extern "C" fn(Raw) -> c_int,
    columns: unsafe extern "C" fn(Raw) -> c_int,
    name: unsafe extern "C" fn(Raw, c_int) -> *const c_char,
    kind: unsafe extern "C" fn(Raw, c_int) -> c_uint,
    format: unsafe extern "C" fn(Raw, c_int) -> c_int,
    is_null: unsafe extern "C" fn(Raw, c_int, c_int) -> c_int,
    length: unsafe extern "C" fn(Raw, c_int, c_int) -> c_int,
    value: unsafe extern "C" fn(Raw, c_int, c_int) -> *const u8,
}

impl Library {
    /// Loads the file. Each file is a separate library, even if another libpq is loaded.
    pub fn load(file: &Path) -> Result<Arc<Self>, libloading::Error> {
        // SAFETY: loading libpq and its dependencies places no requirements on the program.
        let library = Box::leak(Box::new(unsafe { libloading::Library::new(file)? }));
        // SAFETY: libpq documents the types of these functions, which have been the same since
        // PostgreSQL 7.4. The library is never unloaded.
        let loaded = unsafe {
            Self {
                version: *library.get(b"PQlibVersion\0")?,
                connect: *library.get(b"PQconnectdb\0")?,
                reset: *library.get(b"PQreset\0")?,
                finish: *library.get(b"PQfinish\0")?,
                status: *library.get(b"PQstatus\0")?,
                transaction: *library.get(b"PQtransactionStatus\0")?,
                complaint: *library.get(b"PQerrorMessage\0")?,
                on_notice: *library.get(b"PQsetNoticeProcessor\0")?,
                send: *library.get(b"PQsendQueryParams\0")?,
                receive: *library.get(b"PQgetResult\0")?,
                clear: *library.get(b"PQclear\0")?,
                result: *library.get(b"PQresultStatus\0")?,
                field: *library.get(b"PQresultErrorField\0")?,
                tag: *library.get(b"PQcmdStatus\0")?,
                affected: *library.get(b"PQcmdTuples\0")?,
                rows: *library.get(b"PQntuples\0")?,
                columns: *library.get(b"PQnfields\0")?,
                name: *library.get(b"PQfname\0")?,
                kind: *library.get(b"PQftype\0")?,
                format: *library.get(b"PQfformat\0")?,
                is_null: *library.get(b"PQgetisnull\0")?,
                length: *library.get(b"PQgetlength\0")?,
                value: *library.get(b"PQgetvalue\0")?,
            }
        };
        Ok(Arc::new(loaded))
    }

    /// Returns the major version.
    #[must_use]
    pub fn major(&self) -> u32 {
        // SAFETY: the function has no parameters and only returns a number.
        unsafe { (self.version)() }.unsigned_abs() / 10_000
    }
}

/// A connection of libpq, whose calls block.
#[derive(Debug)]
pub struct Connection {
    library: Arc<Library>,
    raw: NonNull<c_void>,
    /// The number of notices. libpq holds the address of this counter.
    notices: Box<Cell<usize>>,
}

// SAFETY: any thread may use a connection of libpq, but only one thread at a time. All calls to the
// server borrow the connection mutably, and a `Connection` is not `Sync`.
unsafe impl Send for Connection {}

extern "C" fn count(notices: *mut c_void, _: *const c_char) {
    // SAFETY: the pointer is the `Cell` of the connection that received a notice. The cell outlives
    // the connection, and no other thread uses it at the same time.
    let notices = unsafe { &*notices.cast::<Cell<usize>>() };
    notices.set(notices.get() + 1);
}

/// Copies a text of libpq.
///
/// # Safety
/// `raw` is null, or points to a valid text that ends with a zero byte.
unsafe fn text(raw: *const c_char) -> Option<String> {
    // SAFETY: the caller guarantees that the text is valid.
    (!raw.is_null()).then(|| unsafe { CStr::from_ptr(raw) }.to_string_lossy().into_owned())
}

impl Connection {
    /// Opens a connection.
    ///
    /// # Errors
    /// libpq's message, if it cannot connect.
    ///
    /// # Panics
    /// If the connection string contains a zero byte.
    pub fn open(library: &Arc<Library>, url: &str) -> Result<Self, String> {
        let url = CString::new(url).expect("no zero byte");
        // SAFETY: the text ends with a zero byte.
        let raw = NonNull::new(unsafe { (library.connect)(url.as_ptr()) }).ok_or("libpq has no memory")?;
        let connection = Self { library: library.clone(), raw, notices: Box::default() };
        let counter = ptr::from_ref(&*connection.notices).cast_mut().cast();
        // SAFETY: the connection is not freed yet. The counter has the type that `count` expects.
        // It lives as long as the connection, even if the connection is moved.
        unsafe { (library.on_notice)(raw.as_ptr(), count, counter) };
        connection.is_alive().then_some(()).ok_or_else(|| connection.complaint())?;
        Ok(connection)
    }

    /// Returns true if libpq is connected.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        // SAFETY: the connection lives until the drop.
        unsafe { (self.library.status)(self.raw.as_ptr()) == CONNECTION_OK }
    }

    /// Connects again with the same connection string.
    ///
    /// # Errors
    /// libpq's message, if it cannot connect.
    pub fn reset(&mut self) -> Result<(), String> {
        // SAFETY: the connection lives until the drop.
        unsafe { (self.library.reset)(self.raw.as_ptr()) };
        self.is_alive().then_some(()).ok_or_else(|| self.complaint())
    }

    fn complaint(&self) -> String {
        // SAFETY: the connection is not freed yet, and its message is valid until the next call.
        unsafe { text((self.library.complaint)(self.raw.as_ptr())) }.unwrap_or_default()
    }

    /// Returns the number of notices so far.
    #[must_use]
    pub fn notices(&self) -> usize {
        self.notices.get()
    }

    /// Returns the state of the transaction.
    #[must_use]
    pub fn state(&self) -> State {
        // SAFETY: the connection lives until the drop.
        match unsafe { (self.library.transaction)(self.raw.as_ptr()) } {
            0 => State::Idle,
            2 => State::Open,
            3 => State::Failed,
            _ => State::Other,
        }
    }

    /// Runs a statement. Parameters and columns are in the binary format, and the server determines
    /// the types of both.
    ///
    /// # Panics
    /// If the text contains a zero byte, or if there are more or longer parameters than the
    /// protocol can count. Also if libpq returns a status that no statement of a transport has,
    /// such as data of a copy.
    pub fn run(&mut self, statement: &str, params: &[Option<&[u8]>]) -> Outcome {
        let statement = CString::new(statement).expect("no zero byte");
        let count = c_int::try_from(params.len()).expect("a number of parameters");
        // libpq takes a null pointer as a null value, so an empty value gets the address of an
        // empty text.
        let values: Vec<*const c_char> = params
            .iter()
            .map(|param| match param {
                None => ptr::null(),
                Some([]) => c"".as_ptr(),
                Some(bytes) => bytes.as_ptr().cast(),
            })
            .collect();
        let length = |param: Option<&[u8]>| c_int::try_from(param.map_or(0, <[u8]>::len)).expect("a length");
        let lengths: Vec<c_int> = params.iter().copied().map(length).collect();
        let formats = vec![BINARY; params.len()];
        // SAFETY: the connection is not freed yet. There are `count` values, lengths and formats,
        // and each length is the length of its value.
        let sent = unsafe {
            (self.library.send)(
                self.raw.as_ptr(),
                statement.as_ptr(),
                count,
                ptr::null(), // the server chooses the types
                values.as_ptr(),
                lengths.as_ptr(),
                formats.as_ptr(),
                BINARY,
            )
        };
        if sent == 0 {
            return Outcome::Lost(None);
        }
        // Keeps the first error. If the commit fails, its error follows the result. PQexecParams
        // would also read all results, but return the last one: libpq's own message about the
        // closed connection, instead of the server's last error.
        let mut told: Option<Outcome> = None;
        while let Some(reply) = self.receive() {
            if matches!(told, None | Some(Outcome::Done(_))) {
                let outcome = reply.outcome();
                told = Some(outcome);
            }
        }
        match told.expect("a statement has an answer") {
            Outcome::Refused(refusal) if !self.is_alive() => Outcome::Lost(Some(refusal)),
            outcome => outcome,
        }
    }

    /// Returns the next result, or `None` after the last one.
    fn receive(&mut self) -> Option<Reply<'_>> {
        // SAFETY: the connection lives until the drop.
        let raw = unsafe { (self.library.receive)(self.raw.as_ptr()) };
        NonNull::new(raw).map(|raw| Reply { library: &self.library, raw: raw.as_ptr() })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the connection is not used afterwards.
        unsafe { (self.library.finish)(self.raw.as_ptr()) };
    }
}

/// A result of libpq.
struct Reply<'a> {
    library: &'a Library,
    raw: Raw,
}

impl Reply<'_> {
    fn outcome(&self) -> Outcome {
        // SAFETY: the result is valid until the drop.
        match unsafe { (self.library.result)(self.raw) } {
            EMPTY_QUERY | COMMAND_OK | TUPLES_OK => Outcome::Done(self.answer()),
            // Counts an error without an SQLSTATE as a lost connection, because libpq itself
            // reported it.
            FATAL_ERROR => self.refusal().map_or(Outcome::Lost(None), Outcome::Refused),
            status => panic!("a status that no statement has here: {status}"),
        }
    }

    fn answer(&self) -> Answer {
        let Self { library, raw } = *self;
        // SAFETY: the result is valid until the drop.
        let (rows, columns) = unsafe { ((library.rows)(raw), (library.columns)(raw)) };
        let column = |at| {
            // SAFETY: the result is valid, and has a column with that number.
            unsafe {
                assert_eq!((library.format)(raw, at), BINARY, "it was asked for");
                (text((library.name)(raw, at)).expect("every column has a name"), (library.kind)(raw, at))
            }
        };
        let row = |row| (0..columns).map(|column| self.value(row, column)).collect();
        // SAFETY: the result is valid. Both values are texts, which may be empty.
        let (tag, affected) = unsafe { (text((library.tag)(raw)), text((library.affected)(raw))) };
        let affected = affected.filter(|number| !number.is_empty());
        Answer {
            columns: (0..columns).map(column).collect(),
            rows: (0..rows).map(row).collect(),
            tag: tag.unwrap_or_default(),
            affected: affected.map_or(0, |number| number.parse().expect("a number")),
        }
    }

    fn value(&self, row: c_int, column: c_int) -> Option<Vec<u8>> {
        let Self { library, raw } = *self;
        // SAFETY: the result is valid, and has this row and column. A value has the length that
        // libpq returns, and has an address even if it is empty.
        unsafe {
            let length = usize::try_from((library.length)(raw, row, column)).expect("a length");
            ((library.is_null)(raw, row, column) == 0)
                .then(|| std::slice::from_raw_parts((library.value)(raw, row, column), length).to_vec())
        }
    }

    /// Returns the server's error, or `None` if the error comes from libpq itself.
    fn refusal(&self) -> Option<Refusal> {
        // SAFETY: the result is valid until the drop.
        let field = |which: u8| unsafe { text((self.library.field)(self.raw, c_int::from(which))) };
        Some(Refusal {
            severity: field(b'V')?,
            code: field(b'C')?,
            message: field(b'M')?,
            detail: field(b'D'),
            hint: field(b'H'),
        })
    }
}

impl Drop for Reply<'_> {
    fn drop(&mut self) {
        // SAFETY: the result is not used afterwards.
        unsafe { (self.library.clear)(self.raw) };
    }
}
