#include "dif/d/types/system_types.h"

#include <array>
#include <vector>

namespace ringside::d {
namespace {

struct Typedef {
  std::string_view name, target;
};

constexpr Typedef kTypedefs[] = {
    {"u_char", "unsigned char"},
    {"u_short", "unsigned short"},
    {"u_int", "unsigned int"},
    {"u_long", "unsigned long"},
    {"u_int8_t", "unsigned char"},
    {"u_int16_t", "unsigned short"},
    {"u_int32_t", "unsigned int"},
    {"u_int64_t", "unsigned long"},
    {"intmax_t", "long"},
    {"uintmax_t", "unsigned long"},
    {"wchar_t", "int"},
    {"time_t", "long"},
    {"hrtime_t", "long long"},
    {"clock_t", "long"},
    {"suseconds_t", "long"},
    {"off_t", "long"},
    {"offset_t", "long long"},
    {"u_offset_t", "unsigned long long"},
    {"daddr_t", "long"},
    {"diskaddr_t", "unsigned long long"},
    {"blkcnt_t", "long"},
    {"blksize_t", "long"},
    {"dev_t", "unsigned int"},
    {"major_t", "unsigned int"},
    {"minor_t", "unsigned int"},
    {"ino_t", "unsigned long"},
    {"mode_t", "unsigned int"},
    {"nlink_t", "unsigned int"},
    {"key_t", "int"},
    {"projid_t", "int"},
    {"taskid_t", "int"},
    {"zoneid_t", "int"},
    {"poolid_t", "int"},
    {"lgrp_id_t", "int"},
    {"processorid_t", "int"},
    {"psetid_t", "int"},
    {"chipid_t", "int"},
    {"pgcnt_t", "unsigned long"},
    {"pfn_t", "unsigned long"},
    {"sa_family_t", "unsigned short"},
    {"socklen_t", "unsigned int"},
    {"in_addr_t", "unsigned int"},
    {"in_port_t", "unsigned short"},
};

constexpr TypeKind kStruct = TypeKind::Struct, kUnion = TypeKind::Union;

struct Field {
  std::string_view name;
  std::string_view type;
  std::uint32_t count = 0;                 // of an array's elements; 0: no array
  TypeKind type_kind = TypeKind::Integer;  // of a type that has a tag
};

struct Structure {
  TypeKind kind;
  std::string_view tag, alias;  // alias: its typedef; may be empty
  std::uint64_t size;
  std::array<std::pair<std::uint32_t, Field>, 5> fields;  // byte offset and what lies there
};

// Each after those that it holds. An address of IPv6 is one under the names of Linux's kernel,
// Solaris and the RFC.
constexpr Structure kStructures[] = {
    {kStruct, "timespec", "timespec_t", 16, {{{0, {"tv_sec", "long"}}, {8, {"tv_nsec", "long"}}}}},
    {kStruct, "timeval", "", 16, {{{0, {"tv_sec", "long"}}, {8, {"tv_usec", "long"}}}}},
    {kStruct, "in_addr", "", 4, {{{0, {"s_addr", "in_addr_t"}}}}},
    {kUnion,
     "_in6_words",
     "",
     16,
     {{{0, {"u6_addr8", "uint8_t", 16}},
       {0, {"u6_addr16", "uint16_t", 8}},
       {0, {"u6_addr32", "uint32_t", 4}},
       {0, {"_S6_u8", "uint8_t", 16}},
       {0, {"_S6_u32", "uint32_t", 4}}}}},
    {kStruct,
     "in6_addr",
     "in6_addr_t",
     16,
     {{{0, {"in6_u", "_in6_words", 0, kUnion}},
       {0, {"_S6_un", "_in6_words", 0, kUnion}},
       {0, {"s6_addr", "uint8_t", 16}}}}},
    {kStruct,
     "sockaddr",
     "",
     16,
     {{{0, {"sa_family", "sa_family_t"}}, {2, {"sa_data", "char", 14}}}}},
    {kStruct,
     "sockaddr_in",
     "",
     16,
     {{{0, {"sin_family", "sa_family_t"}},
       {2, {"sin_port", "in_port_t"}},
       {4, {"sin_addr", "in_addr", 0, kStruct}},
       {8, {"sin_zero", "char", 8}}}}},
    {kStruct,
     "sockaddr_in6",
     "",
     28,
     {{{0, {"sin6_family", "sa_family_t"}},
       {2, {"sin6_port", "in_port_t"}},
       {4, {"sin6_flowinfo", "uint32_t"}},
       {8, {"sin6_addr", "in6_addr", 0, kStruct}},
       {24, {"sin6_scope_id", "uint32_t"}}}}},
    {kStruct,
     "sockaddr_un",
     "",
     110,
     {{{0, {"sun_family", "sa_family_t"}}, {2, {"sun_path", "char", 108}}}}},
    {kStruct,
     "sockaddr_storage",
     "",
     128,
     {{{0, {"ss_family", "sa_family_t"}}, {2, {"ss_data", "char", 126}}}}},
};

/// Adds what the graph has no name for.
class Adder {
 public:
  explicit Adder(TypeGraph& graph) : graph_(graph) {}

  void alias(std::string_view name, TypeId target) {
    if (graph_.find(name)) return;
    graph_.index(graph_.add({.kind = TypeKind::Typedef, .name = name, .target = target}));
  }

  void structure(const Structure& row) {
    if (!graph_.find(row.kind, row.tag)) graph_.index(made(row));
    if (!row.alias.empty()) alias(row.alias, type(row.kind, row.tag));
  }

  TypeId type(TypeKind kind, std::string_view name) const {
    return graph_.find(kind, name).value_or(TypeId{});
  }

 private:
  TypeId made(const Structure& row) {
    std::vector<Member> members;
    for (const auto& [offset, field] : row.fields) {
      if (field.name.empty()) break;
      TypeId of = type(field.type_kind, field.type);
      if (field.count != 0) of = graph_.array_of(of, field.count);
      members.push_back({.name = field.name, .type = of, .bit_offset = offset * 8});
    }
    return graph_.add_struct(row.kind, row.tag, row.size, members);
  }

  TypeGraph& graph_;
};

}  // namespace

void add_system_types(TypeGraph& graph) {
  Adder add(graph);
  for (const Typedef& row : kTypedefs) add.alias(row.name, add.type(TypeKind::Integer, row.target));
  add.alias("caddr_t", graph.pointer_to(add.type(TypeKind::Integer, "char")));
  if (!graph.find("boolean_t")) {
    constexpr std::array<Enumerator, 2> kTruth = {{{"B_FALSE", 0}, {"B_TRUE", 1}}};
    const TypeId truth = graph.add_enum("", 4, false, kTruth);
    graph.index(truth);
    add.alias("boolean_t", truth);
  }
  for (const Structure& row : kStructures) add.structure(row);
  add.alias("timestruc_t", add.type(TypeKind::Struct, "timespec"));
}

}  // namespace ringside::d
