// SPDX-License-Identifier: MIT
// try.go calls the library from goroutines, by cgo.
package main

// #include "plug.h"
import "C"

import (
	"fmt"
	"runtime"
	"sync"
)

func main() {
	var all sync.WaitGroup
	var one sync.Mutex
	bad := 0
	for i := 0; i < 4; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			one.Lock()
			defer one.Unlock()
			bad += int(C.quiesce_try())
			runtime.GC()
		}()
	}
	all.Wait()
	fmt.Println("result", bad)
}
