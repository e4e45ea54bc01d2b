// In this file, top to bottom: errors, signals and orders, values.
#include "library/handles.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <limits>

namespace ringside::library {
namespace {

ringside_error_code code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::Usage: return RINGSIDE_ERROR_USAGE;
    case ErrorCode::Unsupported: return RINGSIDE_ERROR_UNSUPPORTED;
    case ErrorCode::NotFound: return RINGSIDE_ERROR_NOT_FOUND;
    case ErrorCode::Invalid: return RINGSIDE_ERROR_INVALID;
    case ErrorCode::Io: return RINGSIDE_ERROR_IO;
    case ErrorCode::MachineGone: return RINGSIDE_ERROR_GONE;
    case ErrorCode::Limit: return RINGSIDE_ERROR_LIMIT;
    case ErrorCode::Compile: return RINGSIDE_ERROR_COMPILE;
  }
  return RINGSIDE_ERROR_INVALID;
}

bool is_pending(int signal) {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, signal) == 1;
}

}  // namespace

void tell_error(ringside_error** where, ringside_error_code code, std::string message) {
  if (where != nullptr) *where = new ringside_error{code, std::move(message), {}, 0, 0};
}

void tell_error(ringside_error** where, const Error& error) {
  tell_error(where, code_of(error.code), cli::valid_utf8(error.message));
}

HandleOrder::HandleOrder() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void HandleOrder::give() {
  const int kept = errno;
  const bool again = is_given();
  state_.store(again ? EndOrder::Hurried : EndOrder::Given, std::memory_order_relaxed);
  raise_event(event_);
  errno = kept;
}

BlockedSignals::BlockedSignals() : had_sigpipe_(is_pending(SIGPIPE)) {}

/// A SIGPIPE that a peer of ours has caused is not for the program.
BlockedSignals::~BlockedSignals() {
  if (!had_sigpipe_ && is_pending(SIGPIPE)) {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    const timespec at_once{};
    sigtimedwait(&pipe, nullptr, &at_once);
  }
}

// SAFETY: a ringside_value is nothing but the name that the header gives to a Tree.

ringside_value* give_value(Tree tree) {
  return reinterpret_cast<ringside_value*>(new Tree(std::move(tree)));
}

const ringside_value* lend_value(const Tree& tree) {
  return reinterpret_cast<const ringside_value*>(&tree);
}

namespace {

const Tree* tree_of(const ringside_value* value) {
  return reinterpret_cast<const Tree*>(value);
}

const Tree::object_t::value_type& field_at(const Tree& map, std::size_t index) {
  return *std::next(map.get_ref<const Tree::object_t&>().begin(),
                    static_cast<std::ptrdiff_t>(index));
}

const char* text_of(const std::string& text, std::size_t* size) {
  if (size != nullptr) *size = text.size();
  return text.c_str();
}

const char* no_text(std::size_t* size) {
  if (size != nullptr) *size = 0;
  return "";
}

}  // namespace
}  // namespace ringside::library

using ringside::library::Tree, ringside::library::tree_of;

const char* ringside_version(void) {
  return RINGSIDE_VERSION;
}

ringside_error_code ringside_error_get_code(const ringside_error* error) {
  return error->code;
}
const char* ringside_error_message(const ringside_error* error) {
  return error->message.c_str();
}
int ringside_error_line(const ringside_error* error) {
  return error->line;
}
int ringside_error_column(const ringside_error* error) {
  return error->column;
}
const char* ringside_error_tag(const ringside_error* error) {
  return error->tag.c_str();
}
void ringside_error_free(ringside_error* error) {
  delete error;
}

ringside_kind ringside_value_kind(const ringside_value* value) {
  if (value == nullptr) return RINGSIDE_NULL;
  switch (tree_of(value)->type()) {
    case Tree::value_t::boolean: return RINGSIDE_BOOL;
    case Tree::value_t::number_integer: return RINGSIDE_INTEGER;
    case Tree::value_t::number_unsigned: {
      const auto number = tree_of(value)->get<std::uint64_t>();
      const bool fits = number <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
      return fits ? RINGSIDE_INTEGER : RINGSIDE_UNSIGNED;
    }
    case Tree::value_t::number_float: return RINGSIDE_REAL;
    case Tree::value_t::string: return RINGSIDE_TEXT;
    case Tree::value_t::array: return RINGSIDE_LIST;
    case Tree::value_t::object: return RINGSIDE_MAP;
    case Tree::value_t::null:
    case Tree::value_t::binary:
    case Tree::value_t::discarded: break;
  }
  return RINGSIDE_NULL;
}

int64_t ringside_value_integer(const ringside_value* value) {
  return static_cast<std::int64_t>(ringside_value_unsigned(value));
}

uint64_t ringside_value_unsigned(const ringside_value* value) {
  if (value == nullptr) return 0;
  const Tree& tree = *tree_of(value);
  if (tree.is_boolean()) return tree.get<bool>() ? 1 : 0;
  return tree.is_number_integer() ? tree.get<std::uint64_t>() : 0;
}

double ringside_value_real(const ringside_value* value) {
  return value != nullptr && tree_of(value)->is_number() ? tree_of(value)->get<double>() : 0;
}

const char* ringside_value_text(const ringside_value* value, size_t* size) {
  const bool is_text = value != nullptr && tree_of(value)->is_string();
  return is_text ? ringside::library::text_of(tree_of(value)->get_ref<const std::string&>(), size)
                 : ringside::library::no_text(size);
}

size_t ringside_value_count(const ringside_value* value) {
  return value != nullptr && tree_of(value)->is_structured() ? tree_of(value)->size() : 0;
}

const ringside_value* ringside_value_at(const ringside_value* value, size_t index) {
  if (index >= ringside_value_count(value)) return nullptr;
  const Tree& tree = *tree_of(value);
  if (tree.is_array()) return ringside::library::lend_value(tree[index]);
  return ringside::library::lend_value(ringside::library::field_at(tree, index).second);
}

const char* ringside_value_name(const ringside_value* value, size_t index, size_t* size) {
  const bool has =
      value != nullptr && tree_of(value)->is_object() && index < tree_of(value)->size();
  if (!has) return ringside::library::no_text(size);
  return ringside::library::text_of(ringside::library::field_at(*tree_of(value), index).first,
                                    size);
}

const ringside_value* ringside_value_field(const ringside_value* value, const char* name) {
  if (value == nullptr || !tree_of(value)->is_object()) return nullptr;
  const auto found = tree_of(value)->find(name);
  return found == tree_of(value)->end() ? nullptr : ringside::library::lend_value(*found);
}

char* ringside_value_json(const ringside_value* value) {
  if (value == nullptr) return strdup("null");
  return strdup(tree_of(value)->dump(-1, ' ', false, Tree::error_handler_t::replace).c_str());
}

void ringside_value_free(ringside_value* value) {
  delete tree_of(value);
}
