// In this file, top to bottom: exceptions, plain values, stacks, aggregations.
#include "bindings/python/ringside/values.h"

#include <cstdlib>
#include <string_view>
#include <utility>

namespace ringside::python {
namespace {

/// Of the module, which never goes: set once, when it is made.
struct Types {
  py::object error, compile_error, gone_error, stopped_error, frame, bucket;
};
Types* types = nullptr;

std::string_view text_of(const ringside_value* value) {
  std::size_t size = 0;
  const char* const text = ringside_value_text(value, &size);
  return {text, size};
}

py::str name_of(const ringside_value* map, std::size_t index) {
  std::size_t size = 0;
  const char* const name = ringside_value_name(map, index, &size);
  return {name, size};
}

py::object exception_class(py::module_& module, const char* name, const py::object& base,
                           const char* doc) {
  const std::string whole = std::string("ringside.") + name;
  auto made = py::reinterpret_steal<py::object>(
      PyErr_NewExceptionWithDoc(whole.c_str(), doc, base.ptr(), nullptr));
  module.attr(name) = made;
  return made;
}

[[noreturn]] void raise_as(const py::object& kind, const py::object& exception) {
  PyErr_SetObject(kind.ptr(), exception.ptr());
  throw py::error_already_set();
}

const py::object& kind_of(ringside_error_code code) {
  switch (code) {
    case RINGSIDE_ERROR_COMPILE: return types->compile_error;
    case RINGSIDE_ERROR_GONE: return types->gone_error;
    case RINGSIDE_ERROR_STOPPED: return types->stopped_error;
    default: return types->error;
  }
}

}  // namespace

void add_types(py::module_& module) {
  const auto base = py::reinterpret_borrow<py::object>(PyExc_Exception);
  const py::object tuple = py::module_::import("collections").attr("namedtuple");
  types = new Types;
  types->error = exception_class(module, "Error", base, "libringside could not do it.");
  types->compile_error = exception_class(
      module, "CompileError", types->error,
      "The D program is wrong at `line` and `column`; `tag` is dtrace's name for it.");
  types->gone_error =
      exception_class(module, "MachineGoneError", types->error, "The machine has ended.");
  types->stopped_error = exception_class(module, "StoppedError", types->error,
                                         "The trace was stopped before it began.");
  types->frame = tuple("Frame", "address name module symbol offset");
  types->bucket = tuple("Bucket", "value count range");
  for (const auto& each : {types->frame, types->bucket}) each.attr("__module__") = "ringside";
  module.attr("Frame") = types->frame;
  module.attr("Bucket") = types->bucket;
}

void raise(ringside_error* error) {
  const py::object& kind = kind_of(ringside_error_get_code(error));
  const py::object exception = kind(ringside_error_message(error));
  if (kind.is(types->compile_error)) {
    exception.attr("line") = ringside_error_line(error);
    exception.attr("column") = ringside_error_column(error);
    exception.attr("tag") = ringside_error_tag(error);
  }
  ringside_error_free(error);
  raise_as(kind, exception);
}

void raise(const std::string& message) {
  raise_as(types->error, types->error(message));
}

void raise_gone(const py::list& messages) {
  const bool none = messages.empty();
  raise_as(types->gone_error, types->gone_error(none ? py::object(py::str("the machine has ended"))
                                                     : py::object(messages[messages.size() - 1])));
}

py::object to_python(const ringside_value* value) {
  switch (ringside_value_kind(value)) {
    case RINGSIDE_NULL: return py::none();
    case RINGSIDE_BOOL: return py::bool_(ringside_value_integer(value) != 0);
    case RINGSIDE_INTEGER: return py::int_(ringside_value_integer(value));
    case RINGSIDE_UNSIGNED: return py::int_(ringside_value_unsigned(value));
    case RINGSIDE_REAL: return py::float_(ringside_value_real(value));
    case RINGSIDE_TEXT: return py::str(text_of(value));
    case RINGSIDE_LIST: {
      py::list list;
      for (std::size_t i = 0; i < ringside_value_count(value); ++i) {
        list.append(to_python(ringside_value_at(value, i)));
      }
      return list;
    }
    case RINGSIDE_MAP: {
      py::dict map;
      for (std::size_t i = 0; i < ringside_value_count(value); ++i) {
        map[name_of(value, i)] = to_python(ringside_value_at(value, i));
      }
      return map;
    }
  }
  return py::none();
}

py::object to_bytes(const ringside_value* hexadecimal) {
  // SAFETY: a type is an object, as Python's API has it.
  const py::handle bytes(reinterpret_cast<PyObject*>(&PyBytes_Type));
  return bytes.attr("fromhex")(py::str(text_of(hexadecimal)));
}

namespace {

py::object to_frame(const ringside_value* frame) {
  const auto field = [frame](const char* name) {
    return to_python(ringside_value_field(frame, name));
  };
  const char* const address = ringside_value_text(ringside_value_field(frame, "address"), nullptr);
  return types->frame(std::strtoull(address, nullptr, 16), field("name"), field("module"),
                      field("symbol"), field("offset"));
}

}  // namespace

py::list to_frames(const ringside_value* frames) {
  py::list list;
  for (std::size_t i = 0; i < ringside_value_count(frames); ++i) {
    list.append(to_frame(ringside_value_at(frames, i)));
  }
  return list;
}

namespace {

/// A list in a key can only be a stack.
py::object to_key_part(const ringside_value* part) {
  if (ringside_value_kind(part) != RINGSIDE_LIST) return to_python(part);
  return py::tuple(to_frames(part));
}

py::object to_key(const ringside_value* keys) {
  const std::size_t count = ringside_value_count(keys);
  if (count == 1) return to_key_part(ringside_value_at(keys, 0));
  py::tuple key(count);
  for (std::size_t i = 0; i < count; ++i) key[i] = to_key_part(ringside_value_at(keys, i));
  return key;
}

py::object to_buckets(const ringside_value* buckets) {
  py::list list;
  for (std::size_t i = 0; i < ringside_value_count(buckets); ++i) {
    const ringside_value* const bucket = ringside_value_at(buckets, i);
    list.append(types->bucket(to_python(ringside_value_field(bucket, "value")),
                              to_python(ringside_value_field(bucket, "count")),
                              to_python(ringside_value_field(bucket, "range"))));
  }
  return list;
}

}  // namespace

void add_aggregation(py::dict& all, const ringside_value* aggregation) {
  const ringside_value* data = ringside_value_field(aggregation, "aggregation-data");
  if (data == nullptr) data = ringside_value_field(aggregation, "aggregation-percentiles");
  py::dict keys;
  for (std::size_t i = 0; i < ringside_value_count(data); ++i) {
    const ringside_value* const entry = ringside_value_at(data, i);
    const ringside_value* const buckets = ringside_value_field(entry, "buckets");
    // The value stands behind the keys, under its function's name.
    keys[to_key(ringside_value_field(entry, "keys"))] =
        buckets != nullptr ? to_buckets(buckets) : to_python(ringside_value_at(entry, 1));
  }
  all[to_python(ringside_value_field(aggregation, "aggregation-name"))] = std::move(keys);
}

}  // namespace ringside::python
