//! The functions of ringside.h that the wrapper needs.

use std::os::raw::{c_char, c_int};

/// The type of a handle, which is never looked into.
macro_rules! handles {
    ($($name:ident),*) => { $(#[repr(C)] pub struct $name { _private: [u8; 0] })* };
}
handles!(Vm, Trace, Value, Error);

pub const FAILED: c_int = -1;
pub const RECORD: c_int = 1;

pub const BOOL: c_int = 1;
pub const INTEGER: c_int = 2;
pub const UNSIGNED: c_int = 3;
pub const REAL: c_int = 4;
pub const TEXT: c_int = 5;
pub const LIST: c_int = 6;
pub const MAP: c_int = 7;

extern "C" {
    pub fn ringside_error_get_code(error: *const Error) -> c_int;
    pub fn ringside_error_message(error: *const Error) -> *const c_char;
    pub fn ringside_error_line(error: *const Error) -> c_int;
    pub fn ringside_error_column(error: *const Error) -> c_int;
    pub fn ringside_error_free(error: *mut Error);

    pub fn ringside_value_kind(value: *const Value) -> c_int;
    pub fn ringside_value_integer(value: *const Value) -> i64;
    pub fn ringside_value_unsigned(value: *const Value) -> u64;
    pub fn ringside_value_real(value: *const Value) -> f64;
    pub fn ringside_value_text(value: *const Value, size: *mut usize) -> *const c_char;
    pub fn ringside_value_count(value: *const Value) -> usize;
    pub fn ringside_value_at(value: *const Value, index: usize) -> *const Value;
    pub fn ringside_value_name(value: *const Value, index: usize, size: *mut usize) -> *const c_char;
    pub fn ringside_value_free(value: *mut Value);

    pub fn ringside_open(target: *const c_char, error: *mut *mut Error) -> *mut Vm;
    pub fn ringside_close(vm: *mut Vm);
    pub fn ringside_vm_name(vm: *const Vm) -> *const c_char;
    pub fn ringside_why(vm: *mut Vm, error: *mut *mut Error) -> *mut Value;
    pub fn ringside_list(vm: *mut Vm, list: *const c_char, error: *mut *mut Error) -> *mut Value;

    pub fn ringside_trace_new(vm: *mut Vm) -> *mut Trace;
    pub fn ringside_trace_option(trace: *mut Trace, name: *const c_char, value: *const c_char,
                                 error: *mut *mut Error) -> c_int;
    pub fn ringside_trace_compile(trace: *mut Trace, program: *const c_char, error: *mut *mut Error)
                                  -> c_int;
    pub fn ringside_trace_start(trace: *mut Trace, error: *mut *mut Error) -> c_int;
    pub fn ringside_trace_next(trace: *mut Trace, milliseconds: c_int, record: *mut *const Value,
                               error: *mut *mut Error) -> c_int;
    pub fn ringside_trace_pending(trace: *const Trace) -> usize;
    pub fn ringside_trace_end(trace: *const Trace) -> c_int;
    pub fn ringside_trace_stop(trace: *mut Trace);
    pub fn ringside_trace_aggregations(trace: *mut Trace, error: *mut *mut Error) -> *mut Value;
    pub fn ringside_trace_status(trace: *const Trace) -> c_int;
    pub fn ringside_trace_close(trace: *mut Trace);
}
