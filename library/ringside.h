/* libringside: DTrace for virtual machines as a library. Attaches to a running Linux guest, traces
 * it by a D program, and hands over records and aggregations as typed values. docs/library.md shows
 * it at work.
 *
 *   ringside_vm *vm = ringside_open("web1", &error);
 *   ringside_trace *trace = ringside_trace_new(vm);
 *   ringside_trace_compile(trace, "syscall::openat:entry { trace(copyinstr(arg1)); }", &error);
 *   ringside_trace_start(trace, &error);
 *   while (ringside_trace_next(trace, -1, &record, &error) == RINGSIDE_RECORD) ...
 *   ringside_trace_close(trace);
 *   ringside_close(vm);
 *
 * The library never writes to stdout or stderr, never ends the process, and takes no signals: a
 * call blocks signals while it runs, and they are handled when it returns. Its own threads have all
 * signals blocked. ringside_trace_compile() forks a process that guards the guest
 * (docs/library.md); ringside_trace_close() waits for it.
 *
 * Threads: a handle is for one thread at a time; ringside_trace_stop() may be called from any
 * thread and from a signal handler. Different handles may be used on different threads at once.
 * A process that was forked may close handles, which does nothing to the trace; other calls on one
 * that runs are errors.
 *
 * A machine that a call leaves is as it was found. If the process dies, by kill -9 as well, the
 * guest runs on alone; `ringside clean TARGET` takes out what stayed.
 *
 * Errors: functions that can fail take a `ringside_error **`, which may be NULL. On failure they
 * set it, and the caller frees it. Text is UTF-8 and ends with a NUL. Text of a guest is hostile:
 * its bytes that are no UTF-8 are U+FFFD, and it may have control characters. */
#ifndef RINGSIDE_H
#define RINGSIDE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RINGSIDE_API __attribute__((visibility("default")))
#else
#define RINGSIDE_API
#endif

typedef struct ringside_vm ringside_vm;       /* a machine */
typedef struct ringside_trace ringside_trace; /* a D program that is traced on it */
typedef struct ringside_value ringside_value; /* a typed value */
typedef struct ringside_object
    ringside_object; /* a place in the kernel's memory, with its C type */
typedef struct ringside_error ringside_error;

/* "0.1.0" */
RINGSIDE_API const char* ringside_version(void);

/* ---- errors ---- */

typedef enum {
  RINGSIDE_ERROR_USAGE = 1,   /* a call out of order, or a name that does not exist */
  RINGSIDE_ERROR_UNSUPPORTED, /* valid, but cannot be done here */
  RINGSIDE_ERROR_NOT_FOUND,   /* no such machine, probe, symbol or type */
  RINGSIDE_ERROR_INVALID,     /* data that does not have the shape it must have */
  RINGSIDE_ERROR_IO,
  RINGSIDE_ERROR_GONE,    /* the machine has ended */
  RINGSIDE_ERROR_LIMIT,   /* a table or memory is full */
  RINGSIDE_ERROR_COMPILE, /* the D program is wrong: line, column and tag say more */
  RINGSIDE_ERROR_STOPPED  /* ringside_trace_stop() came before the trace began */
} ringside_error_code;

RINGSIDE_API ringside_error_code ringside_error_get_code(const ringside_error* error);
/* One line, or several with the line of the program that is wrong. */
RINGSIDE_API const char* ringside_error_message(const ringside_error* error);
/* Of a compiler's error: the place, from 1, columns in bytes, and dtrace's tag, as "D_SYNTAX".
 * 0 and "" for other errors. */
RINGSIDE_API int ringside_error_line(const ringside_error* error);
RINGSIDE_API int ringside_error_column(const ringside_error* error);
RINGSIDE_API const char* ringside_error_tag(const ringside_error* error);
RINGSIDE_API void ringside_error_free(ringside_error* error);

/* ---- values ---- */

typedef enum {
  RINGSIDE_NULL,
  RINGSIDE_BOOL,
  RINGSIDE_INTEGER,  /* fits int64_t */
  RINGSIDE_UNSIGNED, /* an integer that may not */
  RINGSIDE_REAL,
  RINGSIDE_TEXT,
  RINGSIDE_LIST,
  RINGSIDE_MAP /* named values, in order */
} ringside_kind;

/* The accessors take NULL for a null value. One of another kind gives 0, "" or NULL. */
RINGSIDE_API ringside_kind ringside_value_kind(const ringside_value* value);
RINGSIDE_API int64_t ringside_value_integer(const ringside_value* value);
RINGSIDE_API uint64_t ringside_value_unsigned(const ringside_value* value);
RINGSIDE_API double ringside_value_real(const ringside_value* value);
/* `size` may be NULL; the text may have NULs inside. */
RINGSIDE_API const char* ringside_value_text(const ringside_value* value, size_t* size);
/* How many values a list or a map has. */
RINGSIDE_API size_t ringside_value_count(const ringside_value* value);
RINGSIDE_API const ringside_value* ringside_value_at(const ringside_value* value, size_t index);
/* A map's name of number `index`. */
RINGSIDE_API const char* ringside_value_name(const ringside_value* value, size_t index,
                                             size_t* size);
RINGSIDE_API const ringside_value* ringside_value_field(const ringside_value* value,
                                                        const char* name);
/* The value as one line of JSON; free() it. */
RINGSIDE_API char* ringside_value_json(const ringside_value* value);
/* For values that a function has made for the caller. */
RINGSIDE_API void ringside_value_free(ringside_value* value);

/* ---- machines ---- */

/* A running machine, by any target that `ringside --attach` takes: a libvirt domain, "qmp:SOCKET",
 * "pid:N". Nothing is changed in it. */
RINGSIDE_API ringside_vm* ringside_open(const char* target, ringside_error** error);
/* Traces and objects of it remain valid. */
RINGSIDE_API void ringside_close(ringside_vm* vm);
/* The name that its owner gave it. */
RINGSIDE_API const char* ringside_vm_name(const ringside_vm* vm);

/* Visits the probes that match "provider:module:function:name", where a part may be empty or a
 * pattern; "" is all of them. `visit` ends the list by returning something else than 0. */
typedef int (*ringside_probe_visitor)(void* context, const char* provider, const char* module,
                                      const char* function, const char* name);
RINGSIDE_API int ringside_probes(ringside_vm* vm, const char* description,
                                 ringside_probe_visitor visit, void* context,
                                 ringside_error** error);

/* Why the guest hangs, as `ringside why -O json` has it (docs/why.md). Nothing enters the guest. */
RINGSIDE_API ringside_value* ringside_why(ringside_vm* vm, ringside_error** error);
/* One of the lists that `ringside ps -O json` and its like have (docs/commands.md): "ps",
 * "threads", "dmesg", "modules", "mounts", "lsof", "netstat". Nothing enters the guest. */
RINGSIDE_API ringside_value* ringside_list(ringside_vm* vm, const char* list,
                                           ringside_error** error);

/* ---- traces ---- */

RINGSIDE_API ringside_trace* ringside_trace_new(ringside_vm* vm);
/* -x NAME=VALUE, and D's own options; `value` may be NULL for a switch. "destructive" is -w. Before
 * ringside_trace_compile(). switchrate is 10hz here. */
RINGSIDE_API int ringside_trace_option(ringside_trace* trace, const char* name, const char* value,
                                       ringside_error** error);
/* The next one of $1, $2... */
RINGSIDE_API int ringside_trace_argument(ringside_trace* trace, const char* text,
                                         ringside_error** error);
/* Attaches to the machine, compiles the program for its kernel, and verifies it. Once. Actions that
 * write to the command's output, system() and freopen(), are refused. */
RINGSIDE_API int ringside_trace_compile(ringside_trace* trace, const char* program,
                                        ringside_error** error);
/* Enables the probes; all of them stand when it returns. Once. */
RINGSIDE_API int ringside_trace_start(ringside_trace* trace, ringside_error** error);

enum {
  RINGSIDE_FAILED = -1,
  RINGSIDE_END = 0,    /* the trace has ended, and everything was handed over */
  RINGSIDE_RECORD = 1, /* *record is there until the next call */
  RINGSIDE_TIMEOUT = 2 /* nothing came in the time given */
};
/* The next record, which is a map of docs/output.md: of a firing ("output" lists what its actions
 * recorded), an "error" of a firing, a "count" of drops, "statistics", the aggregations of the end,
 * or a "message", a line that the command would print on stderr. Waits for at most `milliseconds`,
 * -1: without a limit. Buffers are bounded: whoever calls it too seldom gets drops. After the end
 * the machine is as it was found. */
RINGSIDE_API int ringside_trace_next(ringside_trace* trace, int milliseconds,
                                     const ringside_value** record, ringside_error** error);
/* How many records ringside_trace_next() can give at once, without any wait or work. */
RINGSIDE_API size_t ringside_trace_pending(const ringside_trace* trace);
/* The record that ringside_trace_next() gave last, for the caller to free; once. */
RINGSIDE_API ringside_value* ringside_trace_keep(ringside_trace* trace);
/* Calls `take` with each record to the end of the trace; the trace stops if it returns something
 * else than 0. 0, or RINGSIDE_FAILED. */
typedef int (*ringside_record_taker)(void* context, const ringside_value* record);
RINGSIDE_API int ringside_trace_run(ringside_trace* trace, ringside_record_taker take,
                                    void* context, ringside_error** error);
/* Orders the trace to end, as Ctrl-C does to the command: END fires, and the last records follow.
 * A second order waits for nothing any more. */
RINGSIDE_API void ringside_trace_stop(ringside_trace* trace);
/* The aggregations as they are now: a list of maps with "aggregation-name", "aggregation-function"
 * and "aggregation-data", a list of "keys" and a value, which is named after the function. */
RINGSIDE_API ringside_value* ringside_trace_aggregations(ringside_trace* trace,
                                                         ringside_error** error);
typedef enum {
  RINGSIDE_NOT_ENDED,
  RINGSIDE_EXIT, /* D's exit() */
  RINGSIDE_STOPPED,
  RINGSIDE_BUFFER_FULL, /* bufpolicy=fill */
  RINGSIDE_MACHINE_ENDED,
  RINGSIDE_MACHINE_LEFT, /* it runs on and had to be left: it is migrated, for example */
  RINGSIDE_KERNEL_GONE   /* the machine runs on, without the kernel that was traced */
} ringside_end;
/* Why the trace has ended. Of the last three a "message" is the last record. */
RINGSIDE_API ringside_end ringside_trace_end(const ringside_trace* trace);
/* D's exit(status), 0 if there was none. */
RINGSIDE_API int ringside_trace_status(const ringside_trace* trace);
/* Stops it if it runs, and leaves the machine. Records and aggregations are gone. */
RINGSIDE_API void ringside_trace_close(ringside_trace* trace);

/* ---- the kernel's memory and types ---- */

typedef enum {
  RINGSIDE_SCALAR, /* a number, an enumerator, a bit-field */
  RINGSIDE_POINTER,
  RINGSIDE_ARRAY,
  RINGSIDE_STRUCT, /* or a union */
  RINGSIDE_OPAQUE  /* a type of which nothing is known, as void */
} ringside_object_kind;

/* A variable of the kernel or a module; the kernel's types know it, or it is RINGSIDE_OPAQUE. */
RINGSIDE_API ringside_object* ringside_variable(ringside_vm* vm, const char* name,
                                                ringside_error** error);
/* The object of this type ("struct task_struct", "unsigned long") at an address. */
RINGSIDE_API ringside_object* ringside_object_at_address(ringside_vm* vm, const char* type,
                                                         uint64_t address, ringside_error** error);
RINGSIDE_API ringside_object_kind ringside_object_get_kind(const ringside_object* object);
/* In C's spelling: "struct list_head *". */
RINGSIDE_API const char* ringside_object_type(const ringside_object* object);
RINGSIDE_API uint64_t ringside_object_address(const ringside_object* object);
/* In bytes; 0: not known. */
RINGSIDE_API uint64_t ringside_object_size(const ringside_object* object);
/* How many elements an array has. */
RINGSIDE_API uint64_t ringside_object_count(const ringside_object* object);
/* The names of a structure's members, those of its anonymous members among them. */
RINGSIDE_API ringside_value* ringside_object_members(const ringside_object* object);
/* A member of a structure, or of the one that a pointer points at. */
RINGSIDE_API ringside_object* ringside_object_member(const ringside_object* object,
                                                     const char* name, ringside_error** error);
/* An element of an array, or of the array that a pointer points at; 0 is where it points. */
RINGSIDE_API ringside_object* ringside_object_element(const ringside_object* object, int64_t index,
                                                      ringside_error** error);
/* The copy that a CPU has of a per-CPU variable. */
RINGSIDE_API ringside_object* ringside_object_on_cpu(const ringside_object* object, uint32_t cpu,
                                                     ringside_error** error);
/* Reads it: numbers, texts of character arrays, lists, maps of members. A pointer is a number. */
RINGSIDE_API ringside_value* ringside_object_read(const ringside_object* object,
                                                  ringside_error** error);
/* Memory of the kernel. All or nothing. */
RINGSIDE_API int ringside_read_memory(ringside_vm* vm, uint64_t address, void* bytes, size_t size,
                                      ringside_error** error);
RINGSIDE_API void ringside_object_free(ringside_object* object);

#ifdef __cplusplus
}
#endif

#endif
