// Machines, traces and records as Python has them. Used by this folder alone.
// Threads: whoever has the GIL. Calls that take long let go of it; a second thread that uses the
// same object meanwhile gets an error.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "bindings/python/ringside/values.h"

namespace ringside::python {

/// A record of a firing. Its values are made when they are asked for.
class Record {
 public:
  explicit Record(OwnValue value) : value_(std::move(value)) {}

  py::object field(const char* name) const;
  std::string probe() const;
  std::string text() const;
  py::list values() const;
  py::dict aggregations() const;
  py::object as_dict() const { return to_python(value_.get()); }
  std::string to_string() const;

 private:
  OwnValue value_;
};

/// A loan of an object to one call, of which others learn.
class Busy {
 public:
  Busy(bool& flag, const char* what);
  ~Busy() { flag_ = false; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  bool& flag_;
};

class Trace {
 public:
  struct Wish {
    std::string program;
    std::optional<double> seconds;
    std::vector<std::string> arguments;
    py::dict options;
  };
  /// Attaches, compiles, and lets the probes stand.
  Trace(ringside_vm* vm, const Wish& wish);
  ~Trace() { leave(); }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// The next record of a firing; StopIteration at the end.
  Record next();
  /// To the end, whatever comes.
  void run();
  void stop();
  /// The machine is as it was found when it returns.
  void close();
  py::dict aggregations();
  bool is_open() const { return trace_ != nullptr; }
  int status() const { return status_; }
  /// Why it has ended; "" before.
  std::string end_reason() const;

  py::list messages, drops, errors, statistics;

 private:
  using Clock = std::chrono::steady_clock;

  void set_up(const Wish& wish);
  void set_option(const std::string& name, const py::handle& value);
  /// Whether a record came; not at the end.
  bool advance(const ringside_value*& record);
  int wait(const ringside_value*& record, ringside_error*& error);
  bool is_firing(const ringside_value* record);
  py::dict read_aggregations();
  void end();
  void leave();

  ringside_trace* trace_;
  std::optional<Clock::time_point> deadline_;
  py::dict last_aggregations_;
  bool busy_ = false;
  int status_ = 0;
  ringside_end end_ = RINGSIDE_NOT_ENDED;
};

/// A place in the kernel's memory.
class KernelObject {
 public:
  explicit KernelObject(OwnObject object) : object_(std::move(object)) {}

  py::object member(const std::string& name) const;
  py::object element(std::int64_t index) const;
  py::object on_cpu(std::uint32_t cpu) const;
  py::object value() const;
  py::object members() const;
  std::string type() const { return ringside_object_type(object_.get()); }
  std::uint64_t address() const { return ringside_object_address(object_.get()); }
  std::uint64_t size() const { return ringside_object_size(object_.get()); }
  std::uint64_t count() const { return ringside_object_count(object_.get()); }
  std::uint64_t number() const;
  std::string to_string() const;

 private:
  OwnObject object_;
};

/// Numbers and texts as values, all else as a KernelObject.
py::object value_or_object(OwnObject object);

}  // namespace ringside::python
