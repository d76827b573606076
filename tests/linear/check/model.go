// SPDX-License-Identifier: MIT

package main

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// keyState is the state of one key: its value, or 0.
type keyState struct {
	value  uint64
	clears uint8 // number of clears under way that do not report dropped values
	maybe  bool  // one of these clears may have removed the value
}

var mapModel = porcupine.Model{
	Init: func() interface{} { return keyState{} },
	Step: func(state, input, _ interface{}) (bool, interface{}) {
		ok, next := stepMaybe(state.(keyState), input.(*event))
		return ok, next
	},
	Equal:             func(a, b interface{}) bool { return a.(keyState) == b.(keyState) },
	DescribeOperation: func(input, _ interface{}) string { return describe(input.(*event)) },
}

// unknown stands for a value that was there, but that the recorder could not load.
const unknown = ^uint64(0)

// updated returns the result of an update's function for the value that it finds; tests/linear/record.c has the function, too.
func updated(value, there uint64) uint64 {
	if there == 0 {
		if value>>40&3 == 0 {
			return 0
		}
		return value
	}
	switch (value ^ there) >> 40 & 3 {
	case 0:
		return there
	case 1:
		return 0
	}
	return value
}

// isChosen returns whether an erasure takes the value out; tests/linear/record.c has the function, too.
func isChosen(value uint64) bool {
	return value>>43&1 == 1
}

// stepMaybe: a clear visits a key once at least; where the table is being resized it may meet it again, so that while it is under way
// the key may be gone at any moment.
func stepMaybe(state keyState, e *event) (bool, keyState) {
	switch e.Kind {
	case clearBegins:
		state.clears++
	case clearEnds:
		state.clears--
	default:
		there, next := stepKey(state.value, e)
		gone, nextOfNone := false, uint64(0)
		if state.maybe {
			gone, nextOfNone = stepKey(0, e)
		}
		if !there && !gone {
			return false, state
		}
		state.maybe = there && gone && next != nextOfNone
		state.value = next
		if !there {
			state.value = nextOfNone
		}
	}
	state.maybe = state.value != 0 && (state.maybe || state.clears > 0)
	return true, state
}

// stepKey returns whether e's reply is possible when the key has the value state, and the value after it.
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
	case opUpdate:
		return done && e.Found == state, updated(e.Value, state)
	case opClear: // what it took out is known, and told apart, or not
		return state == 0 || e.Found == unknown, 0
	case opErase: // what it took out is told apart, and what is left is not to be taken out
		return !isChosen(state), state
	case opDrop:
		return state != 0 && e.Found == state, 0
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

// taken stands for an id that is allocated and whose pointer is NULL.
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

// stepAlloc accepts the lowest id that is free, and no failure while one is.
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
	case opUpdate:
		return fmt.Sprintf("update(%d, %#x) of %#x", e.Key, e.Value, e.Found)
	case opClear, clearBegins, clearEnds:
		return map[uint8]string{opClear: "clear", clearBegins: "clear begins", clearEnds: "clear ends"}[e.Kind]
	case opErase:
		return "erasure"
	case opDrop:
		return fmt.Sprintf("clear or erasure: %#x dropped of %d", e.Found, e.Key)
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
