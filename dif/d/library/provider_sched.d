/*
 * The probes of sched: threads that take turns on CPUs. Names and arguments: the published Dynamic
 * Tracing Guide. Places: Linux 5.10 to 6.12. Before 5.18 the tracepoint sched_switch does not have the
 * state in which a thread leaves its CPU: it is read from the thread, as the guest's own trace events
 * do. The member has underscores since 5.14.
 */
#pragma D depends_on module vmlinux
#pragma D depends_on library procfs.d
#pragma D depends_on library sched.d

provider sched {
	probe on__cpu()
	    = fbt::finish_task_switch:entry;
	probe off__cpu(struct task_struct *task)
	    : (lwpsinfo_t *task, psinfo_t *task)
	    = sdt:::sched_switch { task = args[2]; };
	probe enqueue(struct task_struct *task, struct rq *queue, int at_head)
	    : (lwpsinfo_t *task, psinfo_t *task, cpuinfo_t *queue, int at_head)
	    = fbt::enqueue_task_fair:entry { task = args[1]; queue = args[0]; at_head = arg2 & 16; };
	probe enqueue(struct task_struct *task, struct rq *queue, int at_head)
	    : (lwpsinfo_t *task, psinfo_t *task, cpuinfo_t *queue, int at_head)
	    = fbt::enqueue_task_rt:entry { task = args[1]; queue = args[0]; at_head = arg2 & 16; };
	probe enqueue(struct task_struct *task, struct rq *queue, int at_head)
	    : (lwpsinfo_t *task, psinfo_t *task, cpuinfo_t *queue, int at_head)
	    = fbt::enqueue_task_dl:entry { task = args[1]; queue = args[0]; at_head = arg2 & 16; };
	probe enqueue(struct task_struct *task, struct rq *queue, int at_head)
	    : (lwpsinfo_t *task, psinfo_t *task, cpuinfo_t *queue, int at_head)
	    = fbt::enqueue_task_stop:entry { task = args[1]; queue = args[0]; at_head = arg2 & 16; };
	probe dequeue(struct task_struct *task, struct rq *queue)
	    : (lwpsinfo_t *task, psinfo_t *task, cpuinfo_t *queue)
	    = fbt::dequeue_task_fair:entry { task = args[1]; queue = args[0]; };
	probe dequeue(struct task_struct *task, struct rq *queue)
	    : (lwpsinfo_t *task, psinfo_t *task, cpuinfo_t *queue)
	    = fbt::dequeue_task_rt:entry { task = args[1]; queue = args[0]; };
	probe dequeue(struct task_struct *task, struct rq *queue)
	    : (lwpsinfo_t *task, psinfo_t *task, cpuinfo_t *queue)
	    = fbt::dequeue_task_dl:entry { task = args[1]; queue = args[0]; };
	probe dequeue(struct task_struct *task, struct rq *queue)
	    : (lwpsinfo_t *task, psinfo_t *task, cpuinfo_t *queue)
	    = fbt::dequeue_task_stop:entry { task = args[1]; queue = args[0]; };
	probe change__pri(struct task_struct *task, int nice, int priority)
	    : (lwpsinfo_t *task, psinfo_t *task, int priority)
	    = fbt::set_user_nice:entry /priority != task->static_prio && task->prio > 99/ {
		task = args[0];
		nice = arg1;
		priority = nice + 120;
	    };
	probe surrender(struct task_struct *task)
	    : (lwpsinfo_t *task, psinfo_t *task)
	    = fbt::do_sched_yield:entry { task = curthread; };
	probe tick(struct task_struct *task)
	    : (lwpsinfo_t *task, psinfo_t *task)
	    = fbt::sched_tick:entry | fbt::scheduler_tick:entry { task = curthread; };
	probe wakeup(struct task_struct *task)
	    : (lwpsinfo_t *task, psinfo_t *task)
	    = sdt:::sched_waking { task = args[0]; };
	probe sleep(int preempt, int state)
	    = sdt:::sched_switch /preempt == 0 && state != 0/ {
		preempt = args[0] & 1;
		state = args[3];
		state = curthread->__state;
		state = curthread->state;
	    };
	probe preempt(int preempt, int state)
	    = sdt:::sched_switch /preempt != 0/ {
		preempt = args[0] & 1;
		state = args[3];
		state = curthread->__state;
		state = curthread->state;
	    };
	probe preempt(int preempt, int state)
	    = sdt:::sched_switch /preempt == 0 && state == 0/ {
		preempt = args[0] & 1;
		state = args[3];
		state = curthread->__state;
		state = curthread->state;
	    };
	probe remain__cpu(struct task_struct *task, unsigned long before, unsigned long now)
	    = fbt::__schedule:entry { self->switches = curthread->nvcsw + curthread->nivcsw; }
	    -> fbt::__schedule:return /before == now && task->pid != 0/ {
		task = curthread;
		before = self->switches;
		now = curthread->nvcsw + curthread->nivcsw;
	    };
	probe schedctl__nopreempt() absent "no thread of Linux asks so; nearest: sched:::preempt";
	probe schedctl__preempt() absent "no thread of Linux asks so; nearest: sched:::preempt";
	probe schedctl__yield() absent "no thread of Linux asks so; nearest: sched:::surrender";
	probe cpucaps__sleep() absent "Linux caps groups, not threads; nearest: fbt::throttle_cfs_rq:entry";
	probe cpucaps__wakeup()
	    absent "Linux caps groups, not threads; nearest: fbt::unthrottle_cfs_rq:entry";
};
