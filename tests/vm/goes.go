// Calls functions a known number of times, when it is told to: `goes NUMBER` waits until /tmp/go
// exists. Then goroutines call so often what takes more and more stack, which Go moves meanwhile, and
// what takes long, in which Go interrupts them. /tmp/said gets the numbers of calls, or what went wrong.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"time"
)

const depth = 100

// One call takes some 600 bytes of stack.
//
//go:noinline
func deep(left, tag int) int {
	var room [64]int
	room[tag&63] = tag
	if left == 0 {
		return room[tag&63]
	}
	return deep(left-1, tag+1) + room[tag&63] - tag
}

// Its results are the sum and the second one.
//
//go:noinline
func sums(a, b, c, d, e, f, g, h, i int) (int, int) {
	var all [9]int
	for n, one := range [...]int{a, b, c, d, e, f, g, h, i} {
		all[n] = one
	}
	sum := 0
	for _, one := range all {
		sum += one
	}
	return sum, b
}

//go:noinline
func leaf(a, b int) int { return a + b }

func work(number int) error {
	for n := 0; n < number; n++ {
		var result int
		var done sync.WaitGroup
		done.Add(1)
		go func() { // with a small stack
			result = deep(depth, n)
			done.Done()
		}()
		for m := 0; m < 10; m++ {
			if sum, second := sums(n, m, 1, 2, 3, 4, 5, 6, 7); sum != n+m+28 || second != m {
				return fmt.Errorf("sums %d %d", n, m)
			}
		}
		done.Wait()
		if result != n+depth || leaf(n, 1) != n+1 {
			return fmt.Errorf("deep %d", n)
		}
	}
	return nil
}

func main() {
	number, _ := strconv.Atoi(os.Args[1])
	runtime.GOMAXPROCS(2)
	for {
		if _, err := os.Stat("/tmp/go"); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	pprof.StartCPUProfile(io.Discard)
	stop := make(chan bool)
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	const workers = 4
	results := make(chan error)
	for n := 0; n < workers; n++ {
		go func() { results <- work(number) }()
	}
	said := fmt.Sprintf("deep %d\nsums %d\n", workers*number*(depth+1), workers*number*10)
	for n := 0; n < workers; n++ {
		if err := <-results; err != nil {
			said = err.Error() + "\n"
		}
	}
	stop <- true
	pprof.StopCPUProfile()
	os.WriteFile("/tmp/saying", []byte(said), 0644)
	os.Rename("/tmp/saying", "/tmp/said")
}
