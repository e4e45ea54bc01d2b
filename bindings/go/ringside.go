// Package ringside is DTrace for virtual machines: it traces a running Linux guest from its host, by a D
// program. Values are those of docs/output.md: nil, bool, int64, uint64 (what does not fit an int64),
// float64, string, []any and Map.
//
// A Machine and its traces are used by one goroutine at a time; Trace.Stop may be called from any.
package ringside

/*
#cgo pkg-config: ringside
#include <ringside.h>
#include <stdlib.h>
*/
import "C"

import (
	"errors"
	"time"
	"unsafe"
)

// Error tells why something failed. Line and Column are a place in the D program, from 1, or 0.
type Error struct {
	Code         int
	Message      string
	Line, Column int
}

func (e *Error) Error() string { return e.Message }

var errClosed = errors.New("ringside: it is closed")

// takeError frees an error that the library has made.
func takeError(made *C.ringside_error) error {
	defer C.ringside_error_free(made)
	return &Error{
		Code:    int(C.ringside_error_get_code(made)),
		Message: C.GoString(C.ringside_error_message(made)),
		Line:    int(C.ringside_error_line(made)),
		Column:  int(C.ringside_error_column(made)),
	}
}

// Map has named values.
type Map map[string]any

func textOf(data *C.char, size C.size_t) string {
	return C.GoStringN(data, C.int(size))
}

// copyValue makes Go's values of one that the library lends.
func copyValue(value *C.ringside_value) any {
	count := C.ringside_value_count(value)
	switch C.ringside_value_kind(value) {
	case C.RINGSIDE_BOOL:
		return C.ringside_value_integer(value) != 0
	case C.RINGSIDE_INTEGER:
		return int64(C.ringside_value_integer(value))
	case C.RINGSIDE_UNSIGNED:
		return uint64(C.ringside_value_unsigned(value))
	case C.RINGSIDE_REAL:
		return float64(C.ringside_value_real(value))
	case C.RINGSIDE_TEXT:
		var size C.size_t
		data := C.ringside_value_text(value, &size)
		return textOf(data, size)
	case C.RINGSIDE_LIST:
		list := make([]any, 0, int(count))
		for n := C.size_t(0); n < count; n++ {
			list = append(list, copyValue(C.ringside_value_at(value, n)))
		}
		return list
	case C.RINGSIDE_MAP:
		fields := make(Map, int(count))
		for n := C.size_t(0); n < count; n++ {
			var size C.size_t
			data := C.ringside_value_name(value, n, &size)
			fields[textOf(data, size)] = copyValue(C.ringside_value_at(value, n))
		}
		return fields
	}
	return nil
}

// takeValue frees a value that the library has made.
func takeValue(value *C.ringside_value, failure *C.ringside_error) (any, error) {
	if value == nil {
		return nil, takeError(failure)
	}
	defer C.ringside_value_free(value)
	return copyValue(value), nil
}

// Machine is a running machine.
type Machine struct {
	vm *C.ringside_vm
}

// Open takes any target that `ringside --attach` takes. Nothing is changed in the machine.
func Open(target string) (*Machine, error) {
	text := C.CString(target)
	defer C.free(unsafe.Pointer(text))
	var failure *C.ringside_error
	vm := C.ringside_open(text, &failure)
	if vm == nil {
		return nil, takeError(failure)
	}
	return &Machine{vm}, nil
}

// Close is for the end; traces are closed by themselves.
func (m *Machine) Close() {
	if m.vm != nil {
		C.ringside_close(m.vm)
		m.vm = nil
	}
}

// Name is what the machine's owner calls it.
func (m *Machine) Name() string {
	if m.vm == nil {
		return ""
	}
	return C.GoString(C.ringside_vm_name(m.vm))
}

// Why tells why the guest hangs, if it does.
func (m *Machine) Why() (any, error) {
	if m.vm == nil {
		return nil, errClosed
	}
	var failure *C.ringside_error
	value := C.ringside_why(m.vm, &failure)
	return takeValue(value, failure)
}

// List reads "ps", "threads", "dmesg", "modules", "mounts", "lsof" or "netstat".
func (m *Machine) List(name string) (any, error) {
	if m.vm == nil {
		return nil, errClosed
	}
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	var failure *C.ringside_error
	value := C.ringside_list(m.vm, text, &failure)
	return takeValue(value, failure)
}

// Trace is a trace that runs, or has ended.
type Trace struct {
	trace *C.ringside_trace
}

// Trace traces a D program; all its probes stand when it returns. Options are those of -x.
func (m *Machine) Trace(program string, options map[string]string) (*Trace, error) {
	if m.vm == nil {
		return nil, errClosed
	}
	trace := &Trace{C.ringside_trace_new(m.vm)}
	if err := trace.start(program, options); err != nil {
		trace.Close()
		return nil, err
	}
	return trace, nil
}

func (t *Trace) start(program string, options map[string]string) error {
	var failure *C.ringside_error
	for name, value := range options {
		cName, cValue := C.CString(name), C.CString(value)
		done := C.ringside_trace_option(t.trace, cName, cValue, &failure)
		C.free(unsafe.Pointer(cName))
		C.free(unsafe.Pointer(cValue))
		if done != 0 {
			return takeError(failure)
		}
	}
	text := C.CString(program)
	defer C.free(unsafe.Pointer(text))
	if C.ringside_trace_compile(t.trace, text, &failure) != 0 ||
		C.ringside_trace_start(t.trace, &failure) != 0 {
		return takeError(failure)
	}
	return nil
}

// Next is the next record; nil at the end of the trace, or after `limit` (Over tells which). A negative
// limit is none.
func (t *Trace) Next(limit time.Duration) (Map, error) {
	if t.trace == nil {
		return nil, errClosed
	}
	wait := C.int(-1)
	if limit >= 0 {
		wait = C.int(limit.Milliseconds())
	}
	var record *C.ringside_value
	var failure *C.ringside_error
	switch C.ringside_trace_next(t.trace, wait, &record, &failure) {
	case C.RINGSIDE_RECORD:
		fields, _ := copyValue(record).(Map)
		return fields, nil
	case C.RINGSIDE_FAILED:
		return nil, takeError(failure)
	}
	return nil, nil
}

// Over tells whether it has ended and all its records were handed over.
func (t *Trace) Over() bool {
	return t.trace == nil || (C.ringside_trace_end(t.trace) != C.RINGSIDE_NOT_ENDED &&
		C.ringside_trace_pending(t.trace) == 0)
}

// Stop orders it to end; the last records follow.
func (t *Trace) Stop() {
	if t.trace != nil {
		C.ringside_trace_stop(t.trace)
	}
}

// Aggregations are those of now.
func (t *Trace) Aggregations() (any, error) {
	if t.trace == nil {
		return nil, errClosed
	}
	var failure *C.ringside_error
	value := C.ringside_trace_aggregations(t.trace, &failure)
	return takeValue(value, failure)
}

// Status is D's exit(status).
func (t *Trace) Status() int {
	if t.trace == nil {
		return 0
	}
	return int(C.ringside_trace_status(t.trace))
}

// Close leaves the machine as it was found.
func (t *Trace) Close() {
	if t.trace != nil {
		C.ringside_trace_close(t.trace)
		t.trace = nil
	}
}
