//! DTrace for virtual machines: traces a running Linux guest from its host, by a D program.
//!
//! ```no_run
//! let mut vm = ringside::Machine::open("web1")?;
//! let mut trace = vm.trace("syscall::openat:entry { trace(copyinstr(arg1)); }", &[])?;
//! while let Some(record) = trace.next_record(None)? {
//!     println!("{:?}", record.get("output"));
//! }
//! # Ok::<(), ringside::Error>(())
//! ```
//!
//! Values are those of docs/output.md. A handle may move to another thread, and is used by one at a
//! time, which Rust sees to.

mod sys;

use std::ffi::{CStr, CString};
use std::fmt;
use std::marker::PhantomData;
use std::os::raw::{c_char, c_int};
use std::ptr;
use std::time::Duration;

/// Why something failed. `line` and `column` are a place in the D program, from 1, or 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub code: i32,
    pub message: String,
    pub line: i32,
    pub column: i32,
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl Error {
    const INVALID: i32 = 4;

    /// Takes over an error that the library has made.
    fn take(error: *mut sys::Error) -> Error {
        // SAFETY: the library sets the error whenever a call fails, and it is ours to free.
        unsafe {
            let taken = Error {
                code: sys::ringside_error_get_code(error),
                message: text(sys::ringside_error_message(error)),
                line: sys::ringside_error_line(error),
                column: sys::ringside_error_column(error),
            };
            sys::ringside_error_free(error);
            taken
        }
    }
}

/// SAFETY: `text` ends with a NUL.
unsafe fn text(text: *const c_char) -> String {
    CStr::from_ptr(text).to_string_lossy().into_owned()
}

fn c_text(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error {
        code: Error::INVALID,
        message: "the text has a NUL inside".to_string(),
        line: 0,
        column: 0,
    })
}

/// A typed value. An integer that does not fit an i64 is Unsigned.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Unsigned(u64),
    Real(f64),
    Text(String),
    List(Vec<Value>),
    Map(Vec<(String, Value)>),
}

impl Value {
    /// A field of a map.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Map(fields) => fields.iter().find(|field| field.0 == name).map(|field| &field.1),
            _ => None,
        }
    }

    /// The parts of a list; none of another value.
    pub fn items(&self) -> &[Value] {
        match self {
            Value::List(items) => items,
            _ => &[],
        }
    }

    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// SAFETY: `value` is null, or a value that lives as long as the call.
    unsafe fn copy(value: *const sys::Value) -> Value {
        let bytes = |data: *const c_char, size: usize| {
            String::from_utf8_lossy(std::slice::from_raw_parts(data.cast::<u8>(), size)).into_owned()
        };
        let count = sys::ringside_value_count(value);
        let mut size = 0;
        match sys::ringside_value_kind(value) {
            sys::BOOL => Value::Bool(sys::ringside_value_integer(value) != 0),
            sys::INTEGER => Value::Integer(sys::ringside_value_integer(value)),
            sys::UNSIGNED => Value::Unsigned(sys::ringside_value_unsigned(value)),
            sys::REAL => Value::Real(sys::ringside_value_real(value)),
            sys::TEXT => {
                let data = sys::ringside_value_text(value, &mut size);
                Value::Text(bytes(data, size))
            }
            sys::LIST => Value::List(
                (0..count).map(|n| Value::copy(sys::ringside_value_at(value, n))).collect(),
            ),
            sys::MAP => Value::Map(
                (0..count)
                    .map(|n| {
                        let data = sys::ringside_value_name(value, n, &mut size);
                        (bytes(data, size), Value::copy(sys::ringside_value_at(value, n)))
                    })
                    .collect(),
            ),
            _ => Value::Null,
        }
    }

    /// Takes over a value that the library has made, or its error.
    fn take(value: *mut sys::Value, error: *mut sys::Error) -> Result<Value, Error> {
        if value.is_null() {
            return Err(Error::take(error));
        }
        // SAFETY: it is there, and ours to free.
        unsafe {
            let taken = Value::copy(value);
            sys::ringside_value_free(value);
            Ok(taken)
        }
    }
}

/// A running machine.
pub struct Machine {
    vm: *mut sys::Vm,
}

// SAFETY: a handle is for one thread at a time, whichever it is.
unsafe impl Send for Machine {}

impl Machine {
    /// By any target that `ringside --attach` takes. Nothing is changed in it.
    pub fn open(target: &str) -> Result<Machine, Error> {
        let target = c_text(target)?;
        let mut error = ptr::null_mut();
        // SAFETY: both pointers are good for the call.
        let vm = unsafe { sys::ringside_open(target.as_ptr(), &mut error) };
        if vm.is_null() {
            return Err(Error::take(error));
        }
        Ok(Machine { vm })
    }

    pub fn name(&self) -> String {
        // SAFETY: the handle is open as long as `self`.
        unsafe { text(sys::ringside_vm_name(self.vm)) }
    }

    /// Why the guest hangs, if it does.
    pub fn why(&mut self) -> Result<Value, Error> {
        let mut error = ptr::null_mut();
        // SAFETY: as above.
        Value::take(unsafe { sys::ringside_why(self.vm, &mut error) }, error)
    }

    /// "ps", "threads", "dmesg", "modules", "mounts", "lsof" or "netstat".
    pub fn list(&mut self, name: &str) -> Result<Value, Error> {
        let name = c_text(name)?;
        let mut error = ptr::null_mut();
        // SAFETY: as above.
        Value::take(unsafe { sys::ringside_list(self.vm, name.as_ptr(), &mut error) }, error)
    }

    /// Traces a D program; all its probes stand when this returns. Options are those of -x.
    pub fn trace(&mut self, program: &str, options: &[(&str, &str)]) -> Result<Trace<'_>, Error> {
        let program = c_text(program)?;
        // SAFETY: the handle is open; the trace closes what is made here, whatever comes.
        let trace = Trace { trace: unsafe { sys::ringside_trace_new(self.vm) }, vm: PhantomData };
        for (name, value) in options {
            let (name, value) = (c_text(name)?, c_text(value)?);
            trace.step(|handle, error| unsafe {
                sys::ringside_trace_option(handle, name.as_ptr(), value.as_ptr(), error)
            })?;
        }
        trace.step(|handle, error| unsafe {
            sys::ringside_trace_compile(handle, program.as_ptr(), error)
        })?;
        trace.step(|handle, error| unsafe { sys::ringside_trace_start(handle, error) })?;
        Ok(trace)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // SAFETY: nobody has it any more: traces borrow the machine.
        unsafe { sys::ringside_close(self.vm) }
    }
}

/// A trace that runs, or has ended. When it is dropped, the machine is as it was found.
pub struct Trace<'vm> {
    trace: *mut sys::Trace,
    vm: PhantomData<&'vm mut Machine>,
}

// SAFETY: as of Machine.
unsafe impl Send for Trace<'_> {}

impl Trace<'_> {
    fn step(&self, call: impl FnOnce(*mut sys::Trace, *mut *mut sys::Error) -> c_int)
            -> Result<(), Error> {
        let mut error = ptr::null_mut();
        match call(self.trace, &mut error) {
            sys::FAILED => Err(Error::take(error)),
            _ => Ok(()),
        }
    }

    /// The next record; None at the end of the trace, or after `timeout` (is_over() tells which).
    pub fn next_record(&mut self, timeout: Option<Duration>) -> Result<Option<Value>, Error> {
        let limit = timeout.map_or(-1, |time| c_int::try_from(time.as_millis()).unwrap_or(c_int::MAX));
        let (mut record, mut error) = (ptr::null(), ptr::null_mut());
        // SAFETY: the handle is open; the record lives until the next call.
        unsafe {
            match sys::ringside_trace_next(self.trace, limit, &mut record, &mut error) {
                sys::RECORD => Ok(Some(Value::copy(record))),
                sys::FAILED => Err(Error::take(error)),
                _ => Ok(None),
            }
        }
    }

    /// Whether it has ended and all its records were handed over.
    pub fn is_over(&self) -> bool {
        // SAFETY: as above.
        unsafe {
            sys::ringside_trace_end(self.trace) != 0 && sys::ringside_trace_pending(self.trace) == 0
        }
    }

    /// Orders it to end; the last records follow.
    pub fn stop(&mut self) {
        // SAFETY: as above.
        unsafe { sys::ringside_trace_stop(self.trace) }
    }

    /// The aggregations as they are now.
    pub fn aggregations(&mut self) -> Result<Value, Error> {
        let mut error = ptr::null_mut();
        // SAFETY: as above.
        Value::take(unsafe { sys::ringside_trace_aggregations(self.trace, &mut error) }, error)
    }

    /// D's exit(status).
    pub fn status(&self) -> i32 {
        // SAFETY: as above.
        unsafe { sys::ringside_trace_status(self.trace) }
    }
}

impl Drop for Trace<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody has it any more.
        unsafe { sys::ringside_trace_close(self.trace) }
    }
}
