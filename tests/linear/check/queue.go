// SPDX-License-Identifier: MIT

package main

import "github.com/anishathalye/porcupine"

// queue is the content of a queue: the newest value, and a queue without it.  A queue is never changed, so that many share values.
type queue struct {
	oldest []uint64 // the oldest values in their order
	newest []uint64 // behind those; the last is the newest
}

// queueModel is one queue of values, each of which is put in once.
var queueModel = porcupine.Model{
	Init: func() interface{} { return queue{} },
	Step: func(state, input, _ interface{}) (bool, interface{}) {
		ok, next := stepQueue(state.(queue), input.(*event))
		return ok, next
	},
	Equal:             func(a, b interface{}) bool { return a.(queue).equals(b.(queue)) },
	DescribeOperation: func(input, _ interface{}) string { return describe(input.(*event)) },
}

func (q queue) size() int { return len(q.oldest) + len(q.newest) }

func (q queue) at(i int) uint64 {
	if i < len(q.oldest) {
		return q.oldest[i]
	}
	return q.newest[i-len(q.oldest)]
}

func (q queue) equals(other queue) bool {
	if q.size() != other.size() {
		return false
	}
	for i := 0; i < q.size(); i++ {
		if q.at(i) != other.at(i) {
			return false
		}
	}
	return true
}

func (q queue) with(value uint64) queue {
	newest := append(make([]uint64, 0, len(q.newest)+1), q.newest...)
	newest = append(newest, value)
	if len(newest) < 32 {
		return queue{q.oldest, newest}
	}
	return queue{append(append([]uint64{}, q.oldest...), newest...), nil}
}

func (q queue) rest() queue {
	if len(q.oldest) > 0 {
		return queue{q.oldest[1:], q.newest}
	}
	return queue{q.newest[1:], nil}
}

// stepQueue returns whether e's reply is possible when the queue has q, and the queue after it.
func stepQueue(q queue, e *event) (bool, queue) {
	switch e.Kind {
	case opInsert:
		return e.Done == 1, q.with(e.Value)
	case opRemove:
		if q.size() == 0 {
			return e.Found == 0, q
		}
		return e.Found == q.at(0), q.rest()
	case opLookup:
		return (e.Done == 1) == (q.size() > 0), q
	}
	return false, q
}
