#include "vmm/linux/types/variable_types.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace ringside::guest_linux {
namespace {

/// One text at address 0x1000, and nothing elsewhere.
class TextReader final : public GuestReader {
 public:
  explicit TextReader(std::string text) : text_(std::move(text)) { text_.resize(4096); }
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    if (at.raw() != 0x1000 || out.size() > text_.size()) {
      return tl::make_unexpected(Fault{FaultKind::BadAddress, 0, at.raw()});
    }
    std::ranges::copy(std::as_bytes(std::span(text_)).first(out.size()), out.begin());
    return {};
  }

 private:
  std::string text_;
};

TEST(VariableTypes, AreThoseOfTheKernelsHeaders) {
  TypeGraph types;
  types.index(types.add_struct(TypeKind::Struct, "task_struct", 64, {}));
  const TextReader reader("Linux");
  const auto spelled = [&](std::string_view name, std::uint64_t address) {
    const auto type = variable_type(types, name, reader, GuestVirt(address));
    return type ? types.to_string(*type) : "";
  };

  EXPECT_EQ(spelled("jiffies", 0), "unsigned long");
  EXPECT_EQ(spelled("init_task", 0), "struct task_struct");
  EXPECT_EQ(spelled("saved_command_line", 0), "char *");
  EXPECT_EQ(spelled("avenrun", 0), "unsigned long [3]");
  EXPECT_EQ(spelled("linux_banner", 0x1000), "char [6]");
  EXPECT_EQ(spelled("linux_banner", 0), "char [256]") << "not to be read yet";
}

TEST(VariableTypes, AreTheKernelsOwnWhereItTellsThem) {
  TypeGraph types;
  const TextReader reader("");
  types.index_as(*types.find("int"), "variable jiffies");
  types.index_as(*types.find("short"), "variable nobody_knew");

  EXPECT_EQ(variable_type(types, "jiffies", reader, GuestVirt(0)), types.find("int"));
  EXPECT_EQ(variable_type(types, "nobody_knew", reader, GuestVirt(0)), types.find("short"));
  const auto offsets = variable_type(types, "__per_cpu_offset", reader, GuestVirt(0));
  EXPECT_EQ(types.to_string(*offsets), "unsigned long [8192]");
}

TEST(VariableTypes, AreNotMadeUp) {
  TypeGraph types;
  const TextReader reader(std::string(4096, 'x'));

  EXPECT_FALSE(variable_type(types, "nobody_knows", reader, GuestVirt(0x1000)));
  EXPECT_FALSE(variable_type(types, "init_task", reader, GuestVirt(0x1000)))
      << "these types have no struct task_struct";
  const auto endless = variable_type(types, "linux_banner", reader, GuestVirt(0x1000));
  ASSERT_TRUE(endless);
  EXPECT_EQ(types.size_of(*endless), 256u);
}

}  // namespace
}  // namespace ringside::guest_linux
