// C++ whose place in memory or registers a compiler decides.
// Not linked into the product.
#include "vmm/linux/processes/dwarf_sample_for_tests.h"

#include <cstddef>

extern "C" {
DEFINE_SAVER
}

namespace shapes {

struct Base {
  long first;
  char second;
};
struct Other {
  int third;
};
enum class Kind : unsigned short { Round, Square };
class Shape : public Base, public Other {
 public:
  static int count;
  bool is_flat;
  Kind kind;
  char16_t letter;
  int Base::*member;
  const Other& other;
  int method(int a, const Shape& b);
};
int Shape::count = 0;
struct Virtual {
  virtual ~Virtual();
  int after;
};
Virtual::~Virtual() = default;
struct Copied {
  Copied() = default;
  Copied(const Copied& other) : value(other.value) {}
  long value = 1;
};
struct HasCopied {
  Copied inside;
};
struct Plain {
  int value;
};
struct Empty {};

int Shape::method(int a, const Shape& b) {
  return a + static_cast<int>(b.letter);
}

}  // namespace shapes

using shapes::Copied;
using shapes::Empty;
using shapes::HasCopied;
using shapes::Plain;
using shapes::Shape;
using shapes::Virtual;

extern "C" {

int layout_of_shape(Shape* it) {
  return static_cast<int>(it->kind);
}
int layout_of_virtual(Virtual& it) {
  return it.after;
}
long classes(Plain a, Copied b, Empty c, HasCopied d, decltype(nullptr) e, int&& f, int g) {
  return b.value + d.inside.value;
}
Copied returns_copied(int a, bool b) {
  return {};
}
long pointers(int Plain::*a, int (Shape::*b)(int, const Shape&), int c) {
  return c;
}

#define AS(f) (reinterpret_cast<decltype(&f)>(saver))

static void run_classes() {
  AS(classes)({1}, {}, {}, {}, nullptr, 2, 3);
}
static void run_returns_copied() {
  AS(returns_copied)(1, true);
}
static void run_pointers() {
  AS(pointers)(&Plain::value, &Shape::method, 3);
}
static void run_method() {
  reinterpret_cast<int (*)(void*, int, void*)>(saver)(reinterpret_cast<void*>(1), 2,
                                                      reinterpret_cast<void*>(3));
}

#define AT(type, m) offsetof(type, m) * 8, sizeof(type::m) * 8

const sample_layout* sample_layouts() {
  static const sample_layout layouts[] = {
      {"layout_of_shape",
       sizeof(Shape),
       {{"Base.first", AT(Shape, first)},
        {"Base.second", AT(Shape, second)},
        {"Other.third", AT(Shape, third)},
        {"is_flat", AT(Shape, is_flat)},
        {"kind", AT(Shape, kind)},
        {"letter", AT(Shape, letter)},
        {"member", AT(Shape, member)}}},
      {"layout_of_virtual", sizeof(Virtual), {{"after", AT(Virtual, after)}}},
      {}};
  return layouts;
}

#define NOWHERE \
  { 0, 0 }
#define WORD(v) \
  { 1, v }
#define FUNCTION(f) #f, run_##f

const sample_call* sample_calls() {
  // Of an argument that is passed by reference, a caller decides the value.
  static const sample_call calls[] = {
      {FUNCTION(classes),
       7,
       {WORD(1), WORD(kAnyValue), NOWHERE, WORD(kAnyValue), WORD(0), WORD(kAnyValue), WORD(3)}},
      {FUNCTION(returns_copied), 2, {WORD(1), WORD(1)}},
      {FUNCTION(pointers), 3, {WORD(0), NOWHERE, WORD(3)}},
      {"_ZN6shapes5Shape6methodEiRKS0_", run_method, 3, {WORD(1), WORD(2), WORD(3)}},
      {}};
  return calls;
}

}  // extern "C"
