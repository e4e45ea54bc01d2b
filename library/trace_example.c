/* An example of libringside: traces a machine, prints its records as they come, and at the end the
 * aggregations and D's exit status.
 *
 *   trace_example TARGET PROGRAM [OPTION=VALUE]...
 *
 * A line for each record, by callback; with the option "poll" by polling. SIGINT ends the trace. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library/ringside.h"

static ringside_trace* running;

static void stop(int signal) {
  (void)signal;
  // NOLINTNEXTLINE(bugprone-signal-handler): ringside.h says that it may be called here.
  ringside_trace_stop(running);
}

static int report(ringside_error* error) {
  fprintf(stderr, "%s\n", ringside_error_message(error));
  if (ringside_error_line(error) != 0) {
    fprintf(stderr, "%s at line %d, column %d\n", ringside_error_tag(error),
            ringside_error_line(error), ringside_error_column(error));
  }
  ringside_error_free(error);
  return 1;
}

static void print_json(const char* label, const ringside_value* value) {
  char* text = ringside_value_json(value);
  printf("%s: %s\n", label, text);
  free(text);
}

/* Prints the values that printf() and trace() recorded. */
static int take(void* context, const ringside_value* record) {
  const ringside_value* output = ringside_value_field(record, "output");
  (void)context;
  if (ringside_value_field(record, "message") != NULL) print_json("message", record);
  if (ringside_value_field(record, "error") != NULL) print_json("error", record);
  for (size_t i = 0; i < ringside_value_count(output); ++i) {
    const ringside_value* item = ringside_value_at(output, i);
    const ringside_value* value = ringside_value_field(item, "value");
    if (ringside_value_kind(value) == RINGSIDE_INTEGER) {
      printf("integer: %lld\n", (long long)ringside_value_integer(value));
    } else if (value != NULL) {
      printf("text: %s\n", ringside_value_text(value, NULL));
    } else {
      print_json("item", item);
    }
  }
  return 0;
}

static int poll_records(ringside_trace* trace, ringside_error** error) {
  const ringside_value* record;
  int found;
  while ((found = ringside_trace_next(trace, 100, &record, error)) > RINGSIDE_END) {
    if (found == RINGSIDE_RECORD) take(NULL, record);
  }
  return found;
}

static int set_options(ringside_trace* trace, char** options, int* polls, ringside_error** error) {
  for (; *options != NULL; ++options) {
    char* value = strchr(*options, '=');
    if (strcmp(*options, "poll") == 0) {
      *polls = 1;
      continue;
    }
    if (value != NULL) *value++ = '\0';
    if (ringside_trace_option(trace, *options, value, error) != 0) return RINGSIDE_FAILED;
  }
  return 0;
}

int main(int count, char** words) {
  ringside_error* error = NULL;
  ringside_vm* vm;
  int polls = 0, failed;
  if (count < 3) {
    fprintf(stderr, "usage: trace_example TARGET PROGRAM [OPTION=VALUE]...\n");
    return 2;
  }
  vm = ringside_open(words[1], &error);
  if (vm == NULL) return report(error);
  running = ringside_trace_new(vm);
  signal(SIGINT, stop);
  failed = set_options(running, words + 3, &polls, &error) != 0 ||
           ringside_trace_compile(running, words[2], &error) != 0 ||
           ringside_trace_start(running, &error) != 0;
  if (!failed) {
    printf("tracing %s\n", ringside_vm_name(vm));
    fflush(stdout);
    failed = (polls ? poll_records(running, &error)
                    : ringside_trace_run(running, take, NULL, &error)) != RINGSIDE_END;
  }
  if (!failed) {
    ringside_value* aggregations = ringside_trace_aggregations(running, &error);
    print_json("aggregations", aggregations);
    printf("status: %d\n", ringside_trace_status(running));
    ringside_value_free(aggregations);
  }
  if (failed) report(error);
  signal(SIGINT, SIG_DFL);
  ringside_trace_close(running);
  ringside_close(vm);
  return failed;
}
