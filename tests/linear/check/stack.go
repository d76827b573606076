// SPDX-License-Identifier: MIT

package main

import "github.com/anishathalye/porcupine"

// stack is the newest value, and the stack below it; nil is empty.  A stack is never changed, so that many share the lower ones.
type stack struct {
	value uint64
	below *stack
	size  int
}

// stackModel is one stack of values, each of which is put in once.
var stackModel = porcupine.Model{
	Init: func() interface{} { return (*stack)(nil) },
	Step: func(state, input, _ interface{}) (bool, interface{}) {
		ok, next := stepStack(state.(*stack), input.(*event))
		return ok, next
	},
	Equal:             func(a, b interface{}) bool { return a.(*stack).equals(b.(*stack)) },
	DescribeOperation: func(input, _ interface{}) string { return describe(input.(*event)) },
}

func (s *stack) height() int {
	if s == nil {
		return 0
	}
	return s.size
}

func (s *stack) equals(other *stack) bool {
	for s != other {
		if s.height() != other.height() || s.value != other.value {
			return false
		}
		s, other = s.below, other.below
	}
	return true
}

// stepStack returns whether e's reply is possible when the stack has s, and the stack after it.
func stepStack(s *stack, e *event) (bool, *stack) {
	switch e.Kind {
	case opInsert:
		return e.Done == 1, &stack{e.Value, s, s.height() + 1}
	case opRemove:
		if s == nil {
			return e.Found == 0, s
		}
		return e.Found == s.value, s.below
	case opLookup:
		return (e.Done == 1) == (s != nil), s
	}
	return false, s
}
