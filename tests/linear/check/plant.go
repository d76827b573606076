// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"sort"
	"strings"
)

// A plant changes one reply so that the history can no longer be linearized, whatever else is in
// it: values are stored once, so what was there before and after is known.  False if there is no place for it.
type plant func(h *values, e *event) bool

var plants = map[string]plant{
	// A lookup finds a value that had been removed before it began.
	"stale": func(h *values, e *event) bool {
		if e.Kind != opLookup {
			return false
		}
		value, ok := h.gone(e)
		if ok {
			e.Found = value
		}
		return ok
	},
	// A lookup misses a value that stays.
	"missed": func(h *values, e *event) bool {
		if e.Kind != opLookup || !h.throughout(e, e.Found) {
			return false
		}
		e.Found = 0
		return true
	},
	// A removal returns a value that another thread had removed.
	"twice": func(h *values, e *event) bool {
		if e.Kind != opRemove {
			return false
		}
		value, ok := h.gone(e)
		if ok {
			e.Found = value
		}
		return ok
	},
	// An insertion succeeds although the key had a value all the time.
	"both": func(h *values, e *event) bool {
		if e.Kind != opInsert || e.Done == 1 {
			return false
		}
		for value := range h.stored {
			if h.throughout(e, value) {
				e.Done = 1
				return true
			}
		}
		return false
	},
	// The function of an update received a value that had been removed.
	"reported": func(h *values, e *event) bool {
		if e.Kind != opUpdate {
			return false
		}
		value, ok := h.gone(e)
		if ok {
			e.Found = value
		}
		return ok
	},
	// A lookup finds a value of before a clear.
	"kept": func(h *values, e *event) bool {
		if e.Kind != opLookup {
			return false
		}
		for _, clear := range h.clears {
			for value, store := range h.stored {
				if store.Ret < clear.Call && clear.Ret < e.Call && value != e.Found {
					e.Found = value
					return true
				}
			}
		}
		return false
	},
	// A lookup finds a value of before an erasure that takes it out.
	"spared": func(h *values, e *event) bool {
		if e.Kind != opLookup {
			return false
		}
		for _, erasure := range h.erasures {
			for value, store := range h.stored {
				if isChosen(value) && store.Ret < erasure.Call && erasure.Ret < e.Call && value != e.Found {
					e.Found = value
					return true
				}
			}
		}
		return false
	},
	// A change reports failure, although its value was found afterwards.
	"denied": func(h *values, e *event) bool {
		if e.Done == 0 || (e.Kind != opReplace && e.Kind != opInsert && e.Kind != opExchange) || !h.found[e.Value] {
			return false
		}
		e.Done = 0
		return true
	},
}

func plantNames() string {
	var names []string
	for name := range plants {
		names = append(names, name)
	}
	sort.Strings(names)
	return strings.Join(names, " ")
}

// values has, for each value of one key, the event that stored it and the one that removed it, if an event reports that.
type values struct {
	stored, removed map[uint64]*event
	found           map[uint64]bool
	clears          []*event
	erasures        []*event
}

func gather(part []*event, key uint32) *values {
	h := &values{map[uint64]*event{}, map[uint64]*event{}, map[uint64]bool{}, nil, nil}
	for _, e := range part {
		if e.Kind == opAlloc {
			if e.Done == 1 && e.Found == uint64(e.Key-e.Key%maxGroup+key%maxGroup) {
				h.stored[e.Value] = e
			}
			continue
		}
		if e.Kind == opClear {
			h.clears = append(h.clears, e)
			continue
		}
		if e.Kind == opErase {
			h.erasures = append(h.erasures, e)
			continue
		}
		if e.Key != key || e.Kind > nrKinds {
			continue
		}
		if e.Kind == opUpdate {
			h.gatherUpdate(e)
			continue
		}
		h.found[e.Found] = true
		if e.Done == 1 && (e.Kind == opInsert || e.Kind == opSet || e.Kind == opReplace || e.Kind == opExchange) {
			h.stored[e.Value] = e
		}
		if e.Done == 1 && (e.Kind == opSet || e.Kind == opRemove || e.Kind == opExchange || e.Kind == opDrop) {
			h.removed[e.Found] = e
		}
		if e.Done == 1 && (e.Kind == opReplace || e.Kind == opDiscard) {
			h.removed[e.Expected] = e
		}
	}
	return h
}

func (h *values) gatherUpdate(e *event) {
	h.found[e.Found] = true
	next := updated(e.Value, e.Found)
	if next == e.Found {
		return
	}
	if next != 0 {
		h.stored[next] = e
	}
	h.removed[e.Found] = e
}

// gone returns a value that had been removed before e was called.
func (h *values) gone(e *event) (uint64, bool) {
	for value, taker := range h.removed {
		if value != 0 && value != e.Found && taker.Ret < e.Call {
			return value, true
		}
	}
	return 0, false
}

func (h *values) throughout(e *event, value uint64) bool {
	store, taker := h.stored[value], h.removed[value]
	return value != 0 && store != nil && store.Ret < e.Call && taker != nil && e.Ret < taker.Call
}

// apply plants one wrong reply somewhere in the middle of the round.
func apply(events []event, group uint32, name string) error {
	p, ok := plants[name]
	if !ok {
		return fmt.Errorf("no plant %q; there are: %s", name, plantNames())
	}
	parts := split(events, group)
	for i := range events {
		e := &events[(i+len(events)/2)%len(events)]
		before := *e
		if e.Kind != opAlloc && e.Kind != opClear && e.Kind != opErase && p(gather(parts[e.Key/group], e.Key), e) {
			fmt.Printf("planted: %s instead of %s, client %d, ticks %d to %d\n", describe(e), describe(&before),
				e.Client, e.Call, e.Ret)
			return nil
		}
	}
	return fmt.Errorf("no place for %q in this history", name)
}
