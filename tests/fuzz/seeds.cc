#include "tests/fuzz/seeds.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "dif/d/testing/program_runner.h"
#include "dif/dof/dof.h"

namespace ringside::fuzz {
namespace {

constexpr const char* kPrograms[] = {
    "BEGIN { trace(1); exit(0); }",
    "BEGIN { printf(\"%d %s\", pid, execname); }",
    "fbt::vfs_read:entry /execname == \"workload\"/ { @[execname, pid] = count(); }",
    "fbt::vfs_read:entry { @q = quantize(arg0); @l = lquantize(arg2, -10, 10, 2); }",
    ("fbt::vfs_read:entry { self->t = timestamp; this->s = stringof(args[1]->comm); }"
     "fbt::vfs_read:return /self->t/ { @ = avg(timestamp - self->t); self->t = 0; }"),
    "BEGIN { a[1, \"x\"] = 2; a[2, \"y\"] = a[1, \"x\"] + 1; trace(a[2, \"y\"]); }",
    "BEGIN { s = strjoin(\"ab\", lltostr(7)); trace(substr(s, 1)); trace(strtok(s, \"b\")); }",
    "BEGIN { trace(basename(\"/a/b\")); trace(dirname(\"/a/b\")); trace(cleanpath(\"/a/../b\")); }",
    "BEGIN { trace(json(\"{\\\"a\\\": [1, {\\\"b\\\": \\\"x\\\\u0041\\\"}]}\", \"a[1].b\")); }",
    "BEGIN { p = (int *)alloca(16); *p = 3; p[1] = 4; trace(*p + p[1]); tracemem(p, 8); }",
    "fbt::vfs_read:entry { trace(copyinstr(arg3)); trace(inet_ntoa((unsigned int *)arg1)); }",
    "fbt::vfs_read:entry { trace(args[1]->balance); trace(`number); x = 0; x += arg0 / arg2; }",
    "BEGIN { x = 3; if (x > 2) { trace(1); } else { trace(\"two\"); } }",
    "BEGIN { for (i = 0; i < 4; i++) { trace(i); } }",
    "BEGIN { @a[1] = sum(2); @b[1] = max(3); printa(@a, @b); clear(@a); trunc(@b, 1); }",
    "BEGIN { id = speculation(); } tick-1s { speculate(id); trace(1); } END { commit(id); }",
    "fbt::vfs_read:entry { stack(); ustack(3); @[stack(4)] = count(); }",
    "BEGIN { trace(strtoll(\"0x1f\", 16)); trace(index(\"abc\", \"c\")); trace(rand() % 2); }",
    "struct s { int a; char b[4]; }; struct s v; BEGIN { v.a = 1; print(v); trace(sizeof(v)); }",
    "BEGIN { *(int *)0; } ERROR { trace(arg4); }",
    ("fbt::vfs_read:entry { print(*args[1]); this->t = *curthread; trace(this->t.balance);"
     " trace(curthread->file->f_pos + sizeof(struct file) * TASK_DEAD); trace(`init_task.pid); }"),
};

}  // namespace

std::vector<std::string> programs(const std::filesystem::path& golden) {
  std::vector<std::string> result(std::begin(kPrograms), std::end(kPrograms));
  std::vector<std::filesystem::path> scripts;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(golden)) {
    if (entry.path().extension() == ".d") scripts.push_back(entry.path());
  }
  std::ranges::sort(scripts);
  for (const auto& path : scripts) {
    std::ifstream file(path, std::ios::binary);
    result.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return result;
}

std::vector<std::byte> compiled(const std::string& source) {
  d::FakeKernel kernel;
  d::CompileOptions options;
  options.default_arguments = options.destructive = true;
  const auto program = d::compile(source, options, kernel);
  if (!program) return {};
  return dif::write_dof(program->program);
}

}  // namespace ringside::fuzz
