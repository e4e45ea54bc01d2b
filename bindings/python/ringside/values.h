// Values of libringside as Python's, and its errors as exceptions. Used by this folder alone.
// Everything here needs the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "library/ringside.h"

namespace ringside::python {

namespace py = pybind11;

template <auto free>
struct Free {
  template <class T>
  void operator()(T* handle) const {
    free(handle);
  }
};
using OwnValue = std::unique_ptr<ringside_value, Free<&ringside_value_free>>;
using OwnObject = std::unique_ptr<ringside_object, Free<&ringside_object_free>>;

/// Makes the exceptions and the named tuples of the module.
void add_types(py::module_& module);

/// The error as an exception, which is thrown; frees it.
[[noreturn]] void raise(ringside_error* error);
/// One of our own, of ringside.Error.
[[noreturn]] void raise(const std::string& message);

/// MachineGoneError with the last of these lines.
[[noreturn]] void raise_gone(const py::list& messages);

/// Numbers, texts, lists, dictionaries.
py::object to_python(const ringside_value* value);
/// A text in hexadecimal as bytes.
py::object to_bytes(const ringside_value* hexadecimal);
/// The frames of a stack, a list of Frame.
py::list to_frames(const ringside_value* frames);
/// Aggregations: {name: {key: value}}. A key is what the program indexed by: a value, a tuple of
/// several, () for none. A stack in it is a tuple of Frame. The value of a distribution is a list
/// of Bucket.
void add_aggregation(py::dict& all, const ringside_value* aggregation);

}  // namespace ringside::python
