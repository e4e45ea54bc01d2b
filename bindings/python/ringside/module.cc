// The module ringside._ringside. In this file, top to bottom: machines, the kernel's objects, the
// names that Python sees. __init__.pyi has their types.
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "bindings/python/ringside/handles.h"

namespace ringside::python {
namespace {

using OwnMachine = std::unique_ptr<ringside_vm, Free<&ringside_close>>;

class Machine {
 public:
  explicit Machine(const std::string& target) {
    ringside_error* error = nullptr;
    {
      const py::gil_scoped_release others;
      vm_.reset(ringside_open(target.c_str(), &error));
    }
    if (vm_ == nullptr) raise(error);
    name_ = ringside_vm_name(vm_.get());
  }

  const std::string& name() const { return name_; }
  /// Ends its traces.
  void close() {
    const Busy busy(busy_, "the machine");
    for (const auto& each : traces_) {
      if (const auto trace = each.lock()) trace->close();
    }
    traces_.clear();
    vm_.reset();
  }
  std::shared_ptr<Trace> trace(const Trace::Wish& wish) {
    std::erase_if(traces_, [](const auto& each) { return each.expired(); });
    ringside_vm* const vm = handle();
    const Busy busy(busy_, "the machine");
    auto made = std::make_shared<Trace>(vm, wish);
    traces_.push_back(made);
    return made;
  }
  py::list probes(const std::string& description);
  /// Makes a call on the machine that gives a handle, without the GIL.
  template <class Ask>
  auto ask(Ask call) {
    ringside_vm* const vm = handle();
    const Busy busy(busy_, "the machine");
    ringside_error* error = nullptr;
    auto made = [&] {
      const py::gil_scoped_release others;
      return call(vm, &error);
    }();
    if (error != nullptr) raise(error);
    return made;
  }

 private:
  ringside_vm* handle() const {
    if (vm_ == nullptr) raise(name_ + ": the machine is closed");
    return vm_.get();
  }

  OwnMachine vm_;
  std::string name_;
  std::vector<std::weak_ptr<Trace>> traces_;
  bool busy_ = false;
};

py::list Machine::probes(const std::string& description) {
  using Names = std::vector<std::array<std::string, 4>>;
  Names names;
  const auto add = [](void* all, const char* provider, const char* module, const char* function,
                      const char* name) {
    static_cast<Names*>(all)->push_back({provider, module, function, name});
    return 0;
  };
  ask([&](ringside_vm* vm, ringside_error** error) {
    return ringside_probes(vm, description.c_str(), add, &names, error);
  });
  py::list list;
  for (const auto& [provider, module, function, name] : names) {
    std::string whole = provider;
    for (const std::string* const part : {&module, &function, &name})
      whole.append(":").append(*part);
    list.append(whole);
  }
  return list;
}

py::object list_of(Machine& machine, const std::string& name) {
  const OwnValue value(machine.ask([&](ringside_vm* vm, ringside_error** error) {
    return ringside_list(vm, name.c_str(), error);
  }));
  return to_python(value.get());
}

/// The list alone, which stands behind the machine's name.
template <const char* name>
py::object rows_of(Machine& machine) {
  const OwnValue value(machine.ask(
      [&](ringside_vm* vm, ringside_error** error) { return ringside_list(vm, name, error); }));
  return to_python(ringside_value_at(value.get(), 1));
}

py::object why(Machine& machine) {
  const OwnValue value(
      machine.ask([](ringside_vm* vm, ringside_error** error) { return ringside_why(vm, error); }));
  return to_python(value.get());
}

/// The kernel of a machine: its variables by name.
struct Kernel {
  std::shared_ptr<Machine> machine;

  KernelObject variable(const std::string& name) const {
    return KernelObject(OwnObject(machine->ask([&](ringside_vm* vm, ringside_error** error) {
      return ringside_variable(vm, name.c_str(), error);
    })));
  }
  KernelObject at(const std::string& type, std::uint64_t address) const {
    return KernelObject(OwnObject(machine->ask([&](ringside_vm* vm, ringside_error** error) {
      return ringside_object_at_address(vm, type.c_str(), address, error);
    })));
  }
  py::bytes read(std::uint64_t address, std::size_t size) const {
    std::string bytes(size, '\0');
    machine->ask([&](ringside_vm* vm, ringside_error** error) {
      return ringside_read_memory(vm, address, bytes.data(), size, error);
    });
    return bytes;
  }
};

/// An object that a call has made, or its error.
template <class Make>
OwnObject made(Make make) {
  ringside_error* error = nullptr;
  OwnObject object(make(&error));
  if (object == nullptr) raise(error);
  return object;
}

OwnValue read_object(const ringside_object* object) {
  ringside_error* error = nullptr;
  OwnValue value(ringside_object_read(object, &error));
  if (value == nullptr) raise(error);
  return value;
}

}  // namespace

py::object value_or_object(OwnObject object) {
  constexpr std::uint64_t kLongestText = 4096;
  const ringside_object_kind kind = ringside_object_get_kind(object.get());
  if (kind == RINGSIDE_SCALAR) return to_python(read_object(object.get()).get());
  if (kind == RINGSIDE_ARRAY && ringside_object_size(object.get()) <= kLongestText &&
      ringside_object_size(object.get()) != 0) {
    const OwnValue value = read_object(object.get());
    if (ringside_value_kind(value.get()) == RINGSIDE_TEXT) return to_python(value.get());
  }
  return py::cast(KernelObject(std::move(object)));
}

py::object KernelObject::member(const std::string& name) const {
  ringside_error* error = nullptr;
  OwnObject object(ringside_object_member(object_.get(), name.c_str(), &error));
  if (object != nullptr) return value_or_object(std::move(object));
  // hasattr() and others ask for names that nothing has.
  if (ringside_error_get_code(error) != RINGSIDE_ERROR_USAGE) raise(error);
  const std::string message = ringside_error_message(error);
  ringside_error_free(error);
  throw py::attribute_error(message);
}

py::object KernelObject::element(std::int64_t index) const {
  return value_or_object(made([&](ringside_error** error) {
    return ringside_object_element(object_.get(), index, error);
  }));
}

py::object KernelObject::on_cpu(std::uint32_t cpu) const {
  return value_or_object(made(
      [&](ringside_error** error) { return ringside_object_on_cpu(object_.get(), cpu, error); }));
}

py::object KernelObject::value() const {
  return to_python(read_object(object_.get()).get());
}

py::object KernelObject::members() const {
  return to_python(OwnValue(ringside_object_members(object_.get())).get());
}

/// A pointer's value, and a place's address for all else, as in C where an array decays.
std::uint64_t KernelObject::number() const {
  if (ringside_object_get_kind(object_.get()) != RINGSIDE_POINTER) return address();
  return ringside_value_unsigned(read_object(object_.get()).get());
}

std::string KernelObject::to_string() const {
  return py::str("<ringside.KernelObject {} at {:#x}>").format(type(), address());
}

namespace {

constexpr char kPs[] = "ps", kThreads[] = "threads", kDmesg[] = "dmesg", kModules[] = "modules",
               kMounts[] = "mounts", kLsof[] = "lsof", kNetstat[] = "netstat";

std::shared_ptr<Trace> make_trace(Machine& machine, std::string program,
                                  std::optional<double> seconds, std::vector<std::string> arguments,
                                  const py::kwargs& options) {
  return machine.trace({std::move(program), seconds, std::move(arguments), options});
}

void add_machine(py::module_& module) {
  py::class_<Machine, std::shared_ptr<Machine>>(module, "Machine")
      .def(py::init<const std::string&>(), py::arg("target"))
      .def_property_readonly("name", &Machine::name)
      .def("__enter__", [](const py::object& self) { return self; })
      .def("__exit__", [](Machine& self, const py::args&) { self.close(); })
      .def("close", &Machine::close)
      .def("trace", &make_trace, py::arg("program"), py::kw_only(), py::arg("seconds") = py::none(),
           py::arg("arguments") = std::vector<std::string>())
      .def("probes", &Machine::probes, py::arg("description") = "")
      .def("look", &list_of, py::arg("name"))
      .def("ps", &rows_of<kPs>)
      .def("threads", &rows_of<kThreads>)
      .def("dmesg", &rows_of<kDmesg>)
      .def("modules", &rows_of<kModules>)
      .def("mounts", &rows_of<kMounts>)
      .def("lsof", &rows_of<kLsof>)
      .def("netstat", &rows_of<kNetstat>)
      .def("why", &why)
      .def_property_readonly("kernel",
                             [](std::shared_ptr<Machine> self) { return Kernel{std::move(self)}; });
}

void add_trace(py::module_& module) {
  py::class_<Trace, std::shared_ptr<Trace>>(module, "Trace")
      .def("__iter__", [](const py::object& self) { return self; })
      .def("__next__", &Trace::next)
      .def("__enter__", [](const py::object& self) { return self; })
      .def("__exit__", [](Trace& self, const py::args&) { self.close(); })
      .def("run", &Trace::run)
      .def("stop", &Trace::stop)
      .def("close", &Trace::close)
      .def_property_readonly("aggregations", &Trace::aggregations)
      .def_property_readonly("running", &Trace::is_open)
      .def_property_readonly("status", &Trace::status)
      .def_property_readonly("end", &Trace::end_reason)
      .def_readonly("messages", &Trace::messages)
      .def_readonly("drops", &Trace::drops)
      .def_readonly("errors", &Trace::errors)
      .def_readonly("statistics", &Trace::statistics);
  py::class_<Record> record(module, "Record");
  for (const char* const name : {"timestamp", "machine", "cpu", "provider", "module", "function",
                                 "name", "pid", "tid", "execname"}) {
    record.def_property_readonly(name, [name](const Record& self) { return self.field(name); });
  }
  record.def_property_readonly("probe", &Record::probe)
      .def_property_readonly("text", &Record::text)
      .def_property_readonly("values", &Record::values)
      .def_property_readonly("aggregations", &Record::aggregations)
      .def("as_dict", &Record::as_dict)
      .def("__getitem__",
           [](const Record& self, const py::object& key) { return py::object(self.values()[key]); })
      .def("__len__", [](const Record& self) { return self.values().size(); })
      .def("__str__", &Record::text)
      .def("__repr__", &Record::to_string);
}

void add_kernel(py::module_& module) {
  py::class_<Kernel>(module, "Kernel")
      .def("__getitem__", &Kernel::variable)
      .def("at", &Kernel::at, py::arg("type"), py::arg("address"))
      .def("read", &Kernel::read, py::arg("address"), py::arg("size"));
  py::class_<KernelObject>(module, "KernelObject")
      .def("__getattr__",
           [](const KernelObject& self, const std::string& name) {
             // Python asks objects for names of its own, as __iter__, which no structure has.
             if (name.starts_with("__")) throw py::attribute_error(name);
             return self.member(name);
           })
      .def("__getitem__", &KernelObject::element)
      .def("__getitem__", &KernelObject::member)
      .def("__int__", &KernelObject::number)
      .def("__index__", &KernelObject::number)
      .def("__bool__", [](const KernelObject& self) { return self.number() != 0; })
      .def("__len__", &KernelObject::count)
      .def("__dir__", &KernelObject::members)
      .def("on_cpu_", &KernelObject::on_cpu, py::arg("cpu"))
      .def("value_", &KernelObject::value)
      .def("members_", &KernelObject::members)
      .def_property_readonly("type_", &KernelObject::type)
      .def_property_readonly("address_", &KernelObject::address)
      .def_property_readonly("size_", &KernelObject::size)
      .def("__repr__", &KernelObject::to_string);
}

}  // namespace
}  // namespace ringside::python

PYBIND11_MODULE(_ringside, module) {
  using namespace ringside::python;
  add_types(module);
  add_machine(module);
  add_trace(module);
  add_kernel(module);
  module.attr("__version__") = ringside_version();
}
