// In this file, top to bottom: records, a trace's beginning, its records, its end.
#include <algorithm>
#include <string_view>
#include <utility>

#include "bindings/python/ringside/handles.h"

namespace ringside::python {
namespace {

using std::chrono::milliseconds;

/// Between these Python's signal handlers run.
constexpr milliseconds kLongestWait{50};

/// `error` is set by the call that `done` came from, maybe after it was named here.
void check(int done, ringside_error* const& error) {
  if (done == RINGSIDE_FAILED) raise(error);
}

std::string_view text_of(const ringside_value* value) {
  std::size_t size = 0;
  const char* const text = ringside_value_text(value, &size);
  return {text, size};
}

/// One that an action recorded; none for printf()'s text, exit() and the like.
bool add_value(py::list& values, const ringside_value* item) {
  if (const auto* value = ringside_value_field(item, "value")) {
    values.append(to_python(value));
    return true;
  }
  for (const char* const name : {"stack-frames", "ustack-frames"}) {
    if (const auto* frames = ringside_value_field(item, name)) {
      values.append(to_frames(frames));
      return true;
    }
  }
  for (const char* const name : {"sym", "mod", "usym", "umod", "uaddr"}) {
    if (const auto* text = ringside_value_field(item, name)) {
      values.append(to_python(text));
      return true;
    }
  }
  for (const char* const name : {"tracemem", "packet"}) {
    if (const auto* bytes = ringside_value_field(item, name)) {
      values.append(to_bytes(bytes));
      return true;
    }
  }
  return false;
}

template <class Visit>
void for_each_item(const ringside_value* record, Visit visit) {
  const ringside_value* const output = ringside_value_field(record, "output");
  for (std::size_t i = 0; i < ringside_value_count(output); ++i) {
    visit(ringside_value_at(output, i));
  }
}

/// C's texts end at a NUL: what comes behind it would be lost.
void check_whole(const char* what, const std::string& text) {
  if (text.find('\0') != std::string::npos) raise(std::string(what) + " has a NUL in it");
}

}  // namespace

py::object Record::field(const char* name) const {
  return to_python(ringside_value_field(value_.get(), name));
}

std::string Record::probe() const {
  std::string text;
  for (const char* const part : {"provider", "module", "function", "name"}) {
    if (!text.empty()) text += ':';
    text += text_of(ringside_value_field(value_.get(), part));
  }
  return text;
}

std::string Record::text() const {
  std::string text;
  for_each_item(value_.get(), [&](const ringside_value* item) {
    text += text_of(ringside_value_field(item, "message"));
  });
  return text;
}

py::list Record::values() const {
  py::list values;
  for_each_item(value_.get(), [&](const ringside_value* item) { add_value(values, item); });
  return values;
}

py::dict Record::aggregations() const {
  py::dict all;
  for_each_item(value_.get(), [&](const ringside_value* item) {
    if (ringside_value_field(item, "aggregation-name") != nullptr) add_aggregation(all, item);
  });
  return all;
}

std::string Record::to_string() const {
  return "<ringside.Record " + probe() + " " + std::string(py::repr(values())) + ">";
}

Busy::Busy(bool& flag, const char* what) : flag_(flag) {
  if (flag) raise(std::string(what) + " is used by another thread now");
  flag = true;
}

Trace::Trace(ringside_vm* vm, const Wish& wish) : trace_(ringside_trace_new(vm)) {
  constexpr double kLongest = 1e9;  // that many seconds are decades, and fit the clock
  try {
    set_up(wish);
  } catch (...) {
    leave();
    throw;
  }
  if (wish.seconds) {
    deadline_ =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(
                           std::chrono::duration<double>(std::min(*wish.seconds, kLongest)));
  }
}

void Trace::set_up(const Wish& wish) {
  if (wish.seconds && !(*wish.seconds >= 0)) raise("seconds: it takes 0 or more");
  check_whole("the program", wish.program);
  ringside_error* error = nullptr;
  for (const auto& [name, value] : wish.options) set_option(py::str(name), value);
  for (const std::string& each : wish.arguments) {
    check_whole("an argument", each);
    check(ringside_trace_argument(trace_, each.c_str(), &error), error);
  }
  int done = 0;
  {
    const py::gil_scoped_release others;
    done = ringside_trace_compile(trace_, wish.program.c_str(), &error);
    if (done == 0) done = ringside_trace_start(trace_, &error);
  }
  check(done, error);
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

/// True is a switch; False leaves the option as it is.
void Trace::set_option(const std::string& name, const py::handle& value) {
  ringside_error* error = nullptr;
  const bool is_switch = py::isinstance<py::bool_>(value);
  if (is_switch && !value.cast<bool>()) return;
  const std::string text = is_switch ? std::string() : std::string(py::str(value));
  check(ringside_trace_option(trace_, name.c_str(), is_switch ? nullptr : text.c_str(), &error),
        error);
}

int Trace::wait(const ringside_value*& record, ringside_error*& error) {
  auto longest = kLongestWait;
  if (deadline_) {
    const auto left = std::chrono::ceil<milliseconds>(*deadline_ - Clock::now());
    longest = std::clamp(left, milliseconds(0), kLongestWait);
    if (left.count() <= 0) {
      ringside_trace_stop(trace_);
      deadline_.reset();
    }
  }
  const py::gil_scoped_release others;
  return ringside_trace_next(trace_, static_cast<int>(longest.count()), &record, &error);
}

bool Trace::advance(const ringside_value*& record) {
  if (trace_ == nullptr) return false;
  for (;;) {
    ringside_error* error = nullptr;
    const int found = ringside_trace_pending(trace_) != 0
                          ? ringside_trace_next(trace_, 0, &record, &error)
                          : wait(record, error);
    if (found == RINGSIDE_RECORD) return true;
    if (found == RINGSIDE_END) {
      const bool is_lost = ringside_trace_end(trace_) >= RINGSIDE_MACHINE_ENDED;
      end();
      if (is_lost) raise_gone(messages);
      return false;
    }
    check(found, error);
    if (PyErr_CheckSignals() != 0) {
      const py::error_already_set interrupted;
      end();
      throw interrupted;
    }
  }
}

/// All but firings go into lists.
bool Trace::is_firing(const ringside_value* record) {
  if (ringside_value_field(record, "error") != nullptr) {
    errors.append(to_python(record));
  } else if (ringside_value_field(record, "statistics") != nullptr) {
    statistics.append(to_python(ringside_value_field(record, "statistics")));
  } else if (ringside_value_field(record, "kind") != nullptr) {
    drops.append(to_python(record));
  } else if (ringside_value_field(record, "message") != nullptr) {
    messages.append(to_python(ringside_value_field(record, "message")));
  } else {
    // The aggregations of the end are a record of no probe; aggregations() has them.
    return text_of(ringside_value_field(record, "function")) != "INTERNAL";
  }
  return false;
}

Record Trace::next() {
  const Busy busy(busy_, "the trace");
  const ringside_value* record = nullptr;
  while (advance(record)) {
    if (is_firing(record)) return Record(OwnValue(ringside_trace_keep(trace_)));
  }
  throw py::stop_iteration();
}

void Trace::run() {
  const Busy busy(busy_, "the trace");
  const ringside_value* record = nullptr;
  while (advance(record)) is_firing(record);
}

void Trace::stop() {
  if (trace_ != nullptr) ringside_trace_stop(trace_);
}

py::dict Trace::read_aggregations() {
  ringside_error* error = nullptr;
  OwnValue all;
  {
    const py::gil_scoped_release others;
    all.reset(ringside_trace_aggregations(trace_, &error));
  }
  if (all == nullptr) raise(error);
  py::dict found;
  for (std::size_t i = 0; i < ringside_value_count(all.get()); ++i) {
    add_aggregation(found, ringside_value_at(all.get(), i));
  }
  return found;
}

py::dict Trace::aggregations() {
  if (trace_ == nullptr) return last_aggregations_;
  const Busy busy(busy_, "the trace");
  return read_aggregations();
}

/// Keeps what there is to keep, and leaves the machine.
void Trace::end() {
  ringside_trace* const trace = trace_;
  {
    const py::gil_scoped_release others;
    ringside_trace_stop(trace);
    const ringside_value* record = nullptr;
    // END's records are dropped where the loop was left before the end, its aggregations are not.
    while (ringside_trace_next(trace, -1, &record, nullptr) == RINGSIDE_RECORD) {
    }
  }
  last_aggregations_ = read_aggregations();
  status_ = ringside_trace_status(trace);
  end_ = ringside_trace_end(trace);
  trace_ = nullptr;
  const py::gil_scoped_release others;
  ringside_trace_close(trace);
}

std::string Trace::end_reason() const {
  switch (end_) {
    case RINGSIDE_NOT_ENDED: break;
    case RINGSIDE_EXIT: return "exit";
    case RINGSIDE_STOPPED: return "stopped";
    case RINGSIDE_BUFFER_FULL: return "buffer full";
    case RINGSIDE_MACHINE_ENDED: return "machine ended";
    case RINGSIDE_MACHINE_LEFT: return "machine left";
    case RINGSIDE_KERNEL_GONE: return "kernel gone";
  }
  return "";
}

void Trace::close() {
  const Busy busy(busy_, "the trace");
  leave();
}

void Trace::leave() {
  if (trace_ == nullptr) return;
  ringside_trace* const trace = std::exchange(trace_, nullptr);
  const py::gil_scoped_release others;
  ringside_trace_close(trace);
}

}  // namespace ringside::python
