// Files that a guest's processes open, for ten seconds, and how many each has opened:
// go run ./example TARGET
package main

import (
	"fmt"
	"log"
	"os"
	"time"

	"ringside"
)

const program = `syscall::openat:entry {
	@[execname] = count(); trace(execname); trace(copyinstr(arg1)); }`

func trace(target string) error {
	vm, err := ringside.Open(target)
	if err != nil {
		return err
	}
	defer vm.Close()
	trace, err := vm.Trace(program, map[string]string{"bufsize": "16m"})
	if err != nil {
		return err
	}
	defer trace.Close()
	time.AfterFunc(10*time.Second, trace.Stop)
	for !trace.Over() {
		record, err := trace.Next(100 * time.Millisecond)
		if err != nil {
			return err
		}
		items, _ := record["output"].([]any)
		for _, item := range items {
			fmt.Print(item.(ringside.Map)["value"], " ")
		}
		if len(items) != 0 {
			fmt.Println()
		}
	}
	all, err := trace.Aggregations()
	fmt.Println(all)
	return err
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: example TARGET")
	}
	if err := trace(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}
