// A livepatch of getppid(), which does what getppid() does. Built by guest_module.py.
#include <linux/livepatch.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

noinline long patched_getppid(const struct pt_regs *regs);

noinline long patched_getppid(const struct pt_regs *regs) {
  rcu_read_lock();
  const long pid = task_tgid_vnr(rcu_dereference(current->real_parent));
  rcu_read_unlock();
  return pid;
}

static struct klp_func functions[] = {
    {.old_name = "__x64_sys_getppid", .new_func = patched_getppid}, {}};
static struct klp_object objects[] = {{.funcs = functions}, {}};
static struct klp_patch patch = {.mod = THIS_MODULE, .objs = objects};

static int __init begin(void) { return klp_enable_patch(&patch); }
static void __exit end(void) {}

module_init(begin);
module_exit(end);
MODULE_LICENSE("GPL");
MODULE_INFO(livepatch, "Y");
