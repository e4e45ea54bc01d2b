package ringside

import (
	"errors"
	"os"
	"reflect"
	"testing"
	"time"
)

// open is the machine that RINGSIDE_TARGET names; without it there is nothing to test.
func open(t *testing.T) *Machine {
	target := os.Getenv("RINGSIDE_TARGET")
	if target == "" {
		t.Skip("RINGSIDE_TARGET names no machine")
	}
	vm, err := Open(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(vm.Close)
	return vm
}

func TestRecordsAndAggregationsAreExact(t *testing.T) {
	trace, err := open(t).Trace(`BEGIN { printf("%s %d", "seven", 7); @["key", 3] = count();
		@["key", 3] = count(); } tick-10ms { exit(5); }`, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer trace.Close()

	var values []any
	for !trace.Over() {
		record, err := trace.Next(-time.Second)
		if err != nil {
			t.Fatal(err)
		}
		items, _ := record["output"].([]any)
		for _, item := range items {
			if value, is := item.(Map)["value"]; is {
				values = append(values, value)
			}
		}
	}

	if len(values) < 2 || !reflect.DeepEqual(values[:2], []any{"seven", int64(7)}) {
		t.Errorf("values: %v", values)
	}
	if trace.Status() != 5 {
		t.Errorf("status: %d", trace.Status())
	}
	all, err := trace.Aggregations()
	wanted := []any{Map{"aggregation-name": "_", "aggregation-function": "count",
		"aggregation-data": []any{Map{"keys": []any{"key", int64(3)}, "count": int64(2)}}}}
	if err != nil || !reflect.DeepEqual(all, wanted) {
		t.Errorf("aggregations: %v, %v", all, err)
	}
}

func TestErrorsHaveAPlace(t *testing.T) {
	vm := open(t)

	_, err := vm.Trace("BEGIN { trace(nothing); }", nil)

	var failure *Error
	if !errors.As(err, &failure) || failure.Line != 1 || failure.Column != 15 {
		t.Errorf("error: %v", err)
	}
	processes, err := vm.List("ps")
	if err != nil || len(processes.(Map)["processes"].([]any)) == 0 {
		t.Errorf("ps: %v, %v", processes, err)
	}
}
