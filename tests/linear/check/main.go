// SPDX-License-Identifier: MIT

// check says whether recorded histories are linearizable: whether each operation of
// each round could have taken effect at one moment between its call and its return.
// Exit status: 0 all are, 1 one is not, 2 wrong usage or an incomplete file, 3 not decided in time.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"sort"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// verdict is the result for one part of a round.
type verdict struct {
	part     uint32
	result   porcupine.CheckResult
	overlaps uint64
}

func operations(part []*event) []porcupine.Operation {
	ops := make([]porcupine.Operation, len(part))
	for i, e := range part {
		ops[i] = porcupine.Operation{ClientId: int(e.Client), Input: e, Call: int64(e.Call), Return: int64(e.Ret)}
	}
	return ops
}

// judge checks all parts of a round, as many at a time as there are CPUs.
func judge(parts map[uint32][]*event, model porcupine.Model, limit time.Duration) []verdict {
	var verdicts []verdict
	var lock sync.Mutex
	var all sync.WaitGroup
	turn := make(chan struct{}, runtime.NumCPU())
	for part, events := range parts {
		part, events := part, events
		turn <- struct{}{}
		all.Add(1)
		go func() {
			defer all.Done()
			result := porcupine.CheckOperationsTimeout(model, operations(events), limit)
			lock.Lock()
			verdicts = append(verdicts, verdict{part, result, overlaps(events)})
			lock.Unlock()
			<-turn
		}()
	}
	all.Wait()
	sort.Slice(verdicts, func(i, j int) bool { return verdicts[i].part < verdicts[j].part })
	return verdicts
}

// explain shows where the longest linearization of a wrong part ends.
func explain(part []*event, model porcupine.Model, limit time.Duration) {
	_, info := porcupine.CheckOperationsVerbose(model, operations(part), limit)
	var longest []porcupine.Operation
	for _, partial := range info.PartialLinearizationsOperations()[0] {
		if len(partial) > len(longest) {
			longest = partial
		}
	}
	in := map[*event]bool{}
	for _, op := range longest {
		in[op.Input.(*event)] = true
	}
	from := len(longest) - 6
	if from < 0 {
		from = 0
	}
	fmt.Printf("  in an order that is possible, the last of %d:\n", len(longest))
	for _, op := range longest[from:] {
		show(op.Input.(*event))
	}
	fmt.Println("  the next ones to be called, none of which can follow:")
	shown := 0
	for _, e := range part {
		if !in[e] && shown < 8 {
			show(e)
			shown++
		}
	}
}

func show(e *event) {
	fmt.Printf("    client %d, ticks %d to %d: %s\n", e.Client, e.Call, e.Ret, describe(e))
}

type options struct {
	plant                      string
	minOperations, minOverlaps uint64
	limit                      time.Duration
}

// check judges the rounds up to the first that is wrong, and returns an exit status.
func check(r *reader, o options) (int, error) {
	model, rounds, wide := mapModel, 0, uint64(0)
	switch r.head.Model {
	case modelIDs:
		model = idModel
	case modelQueue:
		model = queueModel
	case modelStack:
		model = stackModel
	}
	for {
		events, err := r.next()
		if err != nil {
			return 2, err
		}
		if events == nil {
			break
		}
		if rounds == 0 && o.plant != "" {
			if err := apply(events, r.head.Group, o.plant); err != nil {
				return 2, err
			}
		}
		parts := split(events, r.head.Group)
		for _, v := range judge(parts, model, o.limit) {
			wide += v.overlaps
			if v.result == porcupine.Unknown {
				return 3, fmt.Errorf("round %d, key %d: not decided in %v", rounds, v.part*r.head.Group, o.limit)
			}
			if v.result == porcupine.Illegal {
				fmt.Printf("NOT linearizable: round %d, key %d, %d operations\n", rounds, v.part*r.head.Group,
					len(parts[v.part]))
				if o.plant == "" {
					explain(parts[v.part], model, o.limit)
				}
				return 1, nil
			}
		}
		rounds++
	}
	if r.events < o.minOperations || wide < o.minOverlaps {
		return 2, fmt.Errorf("too little: %d operations, %d of them at the same time as another", r.events, wide)
	}
	fmt.Printf("linearizable: %d operations in %d rounds, %d of them at the same time as another\n", r.events, rounds, wide)
	return 0, nil
}

func main() {
	var o options
	flag.StringVar(&o.plant, "plant", "", "change one reply of the first round, which has to be noticed: "+plantNames())
	flag.Uint64Var(&o.minOperations, "operations", 1, "fail if there are less")
	flag.Uint64Var(&o.minOverlaps, "overlaps", 1, "fail if less were at the same time as another")
	flag.DurationVar(&o.limit, "limit", time.Minute, "time for one key of one round")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: check [options] FILE")
		flag.PrintDefaults()
		os.Exit(2)
	}
	file, err := os.Open(flag.Arg(0))
	var r *reader
	if err == nil {
		r, err = openHistory(file)
	}
	status := 2
	if err == nil {
		status, err = check(r, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
	}
	os.Exit(status)
}
