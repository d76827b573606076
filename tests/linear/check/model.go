// SPDX-License-Identifier: MIT

package main

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// mapModel is one key: the state is its value, or 0.
var mapModel = porcupine.Model{
	Init: func() interface{} { return uint64(0) },
	Step: func(state, input, _ interface{}) (bool, interface{}) {
		ok, next := stepKey(state.(uint64), input.(*event))
		return ok, next
	},
	Equal:             func(a, b interface{}) bool { return a.(uint64) == b.(uint64) },
	DescribeOperation: func(input, _ interface{}) string { return describe(input.(*event)) },
}

// unknown: something was there, but the recorder could not look at it.
const unknown = ^uint64(0)

// stepKey: may e have replied what it did when the key had the value state, and which has it then?
func stepKey(state uint64, e *event) (bool, uint64) {
	done := e.Done == 1
	switch e.Kind {
	case opLookup:
		return e.Found == state, state
	case opInsert:
		if done {
			return state == 0, e.Value
		}
		return state != 0 && (e.Found == state || e.Found == unknown), state
	case opSet:
		return e.Found == state, e.Value
	case opRemove:
		return e.Found == state, 0
	case opReplace, opDiscard:
		if done != (state != 0 && state == e.Expected) {
			return false, state
		}
		if !done {
			return true, state
		}
		if e.Kind == opDiscard {
			return true, 0
		}
		return true, e.Value
	}
	return false, state
}

const maxGroup = 8

// ids is the state of a group: for each id 0 (free), taken, or the value.
type ids [maxGroup]uint64

// taken: the id is allocated, its pointer is NULL.
const taken = 1

var idModel = porcupine.Model{
	Init: func() interface{} { return ids{} },
	Step: func(state, input, _ interface{}) (bool, interface{}) {
		ok, next := stepIDs(state.(ids), input.(*event))
		return ok, next
	},
	Equal:             func(a, b interface{}) bool { return a.(ids) == b.(ids) },
	DescribeOperation: func(input, _ interface{}) string { return describe(input.(*event)) },
}

func stored(value uint64) uint64 {
	if value == 0 {
		return taken
	}
	return value
}

func pointer(slot uint64) uint64 {
	if slot == taken {
		return 0
	}
	return slot
}

func stepIDs(state ids, e *event) (bool, ids) {
	done, slot := e.Done == 1, e.Key%maxGroup
	there := state[slot]
	switch e.Kind {
	case opLookup:
		return e.Found == pointer(there), state
	case opInsert:
		if done {
			state[slot] = stored(e.Value)
		}
		return done == (there == 0), state
	case opRemove:
		state[slot] = 0
		return e.Found == pointer(there), state
	case opExchange:
		if done {
			state[slot] = stored(e.Value)
			return there != 0 && e.Found == pointer(there), state
		}
		return there == 0, state
	case opAlloc:
		return stepAlloc(state, e)
	}
	return false, state
}

// stepAlloc: the lowest id that is free, and no failure while one is.
func stepAlloc(state ids, e *event) (bool, ids) {
	for slot := range state {
		if state[slot] == 0 {
			state[slot] = stored(e.Value)
			return e.Done == 1 && e.Found == uint64(e.Key-e.Key%maxGroup)+uint64(slot), state
		}
	}
	return e.Done == 0, state
}

func describe(e *event) string {
	reply := "failed"
	if e.Done == 1 {
		reply = "done"
	}
	switch e.Kind {
	case opLookup:
		return fmt.Sprintf("lookup(%d) = %#x", e.Key, e.Found)
	case opRemove:
		return fmt.Sprintf("remove(%d) = %#x", e.Key, e.Found)
	case opInsert:
		return fmt.Sprintf("insert(%d, %#x): %s, %#x there", e.Key, e.Value, reply, e.Found)
	case opSet:
		return fmt.Sprintf("set(%d, %#x) = %#x", e.Key, e.Value, e.Found)
	case opReplace:
		return fmt.Sprintf("replace(%d, %#x by %#x): %s", e.Key, e.Expected, e.Value, reply)
	case opDiscard:
		return fmt.Sprintf("discard(%d, %#x): %s", e.Key, e.Expected, reply)
	case opAlloc:
		return fmt.Sprintf("alloc(%d.., %#x): %s, %d", e.Key, e.Value, reply, e.Found)
	case opExchange:
		return fmt.Sprintf("exchange(%d, %#x): %s, %#x there", e.Key, e.Value, reply, e.Found)
	}
	return "?"
}
