#include "cli/examples.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ringside::cli {
namespace {

class Examples : public testing::Test {
 protected:
  Examples() {
    std::filesystem::create_directories(folder_);
    write("reads.d", "#!/usr/bin/env\n/*\n * reads.d - who reads.\n */\nBEGIN { }\n");
    write("reads.txt", "a 1\n");
    write("bare.d", "BEGIN { }\n");
  }
  ~Examples() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
  }

  const std::string folder_ = testing::TempDir() + "examples_test";
};

TEST_F(Examples, AreListedWithTheirPurpose) {
  const auto text = list_examples(folder_);

  ASSERT_TRUE(text);
  EXPECT_TRUE(text->starts_with("bare   \nreads  who reads\n\n")) << *text;
}

TEST_F(Examples, OneIsShownWithItsSample) {
  const auto with = show_example(folder_, "reads");

  ASSERT_TRUE(with);
  EXPECT_TRUE(with->ends_with("BEGIN { }\n\n/* Sample output:\n\na 1\n*/\n")) << *with;
  EXPECT_EQ(show_example(folder_, "reads.d").value(), *with);
  EXPECT_EQ(show_example(folder_, "bare").value(), "BEGIN { }\n");
}

TEST_F(Examples, OneThatIsNotThereIsAnsweredWithTheNearest) {
  EXPECT_EQ(show_example(folder_, "raeds.d").error().message,
            "examples: no script of the name 'raeds.d'; did you mean reads?");
  EXPECT_EQ(show_example(folder_, "xyzzy").error().message,
            "examples: no script of the name 'xyzzy'; ringside examples lists them");
}

TEST_F(Examples, WhatIsNoScriptIsNotShown) {
  write("../outside.d", "secret");

  for (const char* name : {"none", "../outside", "reads.txt", ""})
    EXPECT_EQ(show_example(folder_, name).error().code, ErrorCode::NotFound) << name;
  EXPECT_EQ(list_examples(folder_ + "/none").error().code, ErrorCode::NotFound);
  std::filesystem::remove(folder_ + "/../outside.d");
}

}  // namespace
}  // namespace ringside::cli
