// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"
)

// sequence gives each event two ticks of its own, one after the other.
func sequence(events ...event) []event {
	for i := range events {
		events[i].Call, events[i].Ret = uint64(2*i+1), uint64(2*i+2)
	}
	return events
}

// together lets all events overlap.
func together(events ...event) []event {
	for i := range events {
		events[i].Call, events[i].Ret = uint64(i+1), uint64(i+1+len(events))
		events[i].Client = uint16(i)
	}
	return events
}

func lookup(found uint64) event        { return event{Kind: opLookup, Found: found, Done: 1} }
func insert(value uint64) event        { return event{Kind: opInsert, Value: value, Done: 1} }
func exists(value, found uint64) event { return event{Kind: opInsert, Value: value, Found: found} }
func set(value, found uint64) event    { return event{Kind: opSet, Value: value, Found: found, Done: 1} }
func remove(found uint64) event        { return event{Kind: opRemove, Found: found, Done: 1} }
func discard(expected uint64, done uint8) event {
	return event{Kind: opDiscard, Expected: expected, Done: done}
}
func replace(expected, value uint64, done uint8) event {
	return event{Kind: opReplace, Expected: expected, Value: value, Done: done}
}
func update(value, found uint64) event {
	return event{Kind: opUpdate, Value: value, Found: found, Done: 1}
}

// clear is the event of a type that does not report dropped values; cleared is that of one that reports each as a drop.
func clear() event               { return event{Kind: opClear, Found: unknown, Done: 1} }
func cleared() event             { return event{Kind: opClear, Done: 1} }
func dropped(found uint64) event { return event{Kind: opDrop, Found: found, Done: 1} }

// erased is the event of an erasure, which takes out the values that have the bit chosen.
func erased() event { return event{Kind: opErase, Done: 1} }

const chosen = uint64(1) << 43

// The function of an update chooses its result by these bits of a value.
const (
	putIn, leave          = uint64(1) << 40, uint64(4) << 40
	stays, goes, replaced = uint64(1) << 40, uint64(0), uint64(3) << 40 // results of putIn
)

// In the result of during the events of around, such as a clear or its drops, begin before all others and end after them.
func during(around []event, events ...event) []event {
	events = sequence(events...)
	for i := range events {
		events[i].Call++
		events[i].Ret++
	}
	end := uint64(2*len(events) + 2)
	for _, e := range around {
		e.Call, e.Ret, e.Client = 1, end, 1
		events = append(events, e)
	}
	return events
}

func alloc(value, found uint64, done uint8) event {
	return event{Kind: opAlloc, Value: value, Found: found, Done: done}
}
func at(key uint32, e event) event {
	e.Key = key
	return e
}

func file(model, group uint32, events []event) []byte {
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, header{[8]byte{'q', 'l', 'i', 'n', 'e', 'a', 'r', '1'}, model, group})
	binary.Write(&b, binary.LittleEndian, uint64(len(events)))
	binary.Write(&b, binary.LittleEndian, events)
	binary.Write(&b, binary.LittleEndian, []uint64{0, uint64(len(events))})
	return b.Bytes()
}

func judged(t *testing.T, data []byte) int {
	t.Helper()
	r, err := openHistory(bytes.NewReader(data))
	if err != nil {
		return 2
	}
	status, _ := check(r, options{limit: time.Minute})
	return status
}

func TestMaps(t *testing.T) {
	for name, c := range map[string]struct {
		want   int
		events []event
	}{
		"empty":                  {0, sequence(lookup(0), remove(0), discard(0, 0), replace(0, 64, 0), discard(64, 0))},
		"each kind":              {0, sequence(insert(64), exists(65, 64), lookup(64), set(66, 64), replace(66, 67, 1), remove(67), lookup(0))},
		"compared":               {0, sequence(insert(64), replace(65, 66, 0), discard(65, 0), discard(64, 1), lookup(0))},
		"any order":              {0, together(lookup(64), insert(64), lookup(0), remove(64))},
		"set at the same time":   {0, together(set(64, 65), set(65, 0), lookup(64))},
		"never stored":           {1, sequence(insert(64), lookup(65))},
		"lost":                   {1, sequence(insert(64), lookup(0))},
		"not gone":               {1, sequence(insert(64), remove(64), lookup(64))},
		"two inserted":           {1, together(insert(64), insert(65))},
		"two removed it":         {1, together(insert(64), remove(64), remove(64))},
		"exists, but nothing":    {1, sequence(exists(64, 65))},
		"exists as another":      {1, sequence(insert(64), exists(65, 66))},
		"an update lost":         {1, together(set(64, 0), set(65, 0))},
		"replaced without":       {1, sequence(replace(64, 65, 1))},
		"not replaced":           {1, sequence(insert(64), replace(64, 65, 0))},
		"discarded without":      {1, sequence(insert(64), discard(65, 1))},
		"not discarded":          {1, sequence(insert(64), discard(64, 0))},
		"seen in another order":  {1, append(together(set(64, 0), set(65, 64)), later(lookup(65), lookup(64))...)},
		"updates":                {0, sequence(update(leave, 0), update(putIn, 0), update(stays, putIn), lookup(putIn), update(replaced, putIn), lookup(replaced))},
		"an update takes it out": {0, sequence(insert(putIn), update(goes, putIn), lookup(0))},
		"updates of one value":   {1, together(insert(putIn), update(replaced, putIn), update(replaced+1, putIn))},
		"updated without":        {1, sequence(update(putIn, 64))},
		"an update has failed":   {1, sequence(event{Kind: opUpdate, Value: putIn})},
		"left, but put in":       {1, sequence(update(leave, 0), lookup(leave))},
		"cleared":                {0, sequence(insert(64), clear(), lookup(0))},
		"not cleared":            {1, sequence(insert(64), clear(), lookup(64))},
		"cleared twice":          {0, during([]event{clear()}, insert(64), lookup(0), insert(65), lookup(0), insert(66), lookup(66))},
		"gone before a clear":    {1, append(sequence(insert(64), lookup(0)), later(clear())...)},
		"gone after a clear":     {1, append(sequence(clear(), insert(64)), later(lookup(0))...)},
		"goes as it is compared": {0, during([]event{clear()}, insert(64), replace(64, 65, 0), insert(66), discard(66, 1))},
		"dropped":                {0, during([]event{cleared(), dropped(64)}, insert(64), lookup(0))},
		"dropped twice":          {0, during([]event{cleared(), dropped(64), dropped(65)}, insert(64), lookup(0), insert(65), lookup(0))},
		"not dropped":            {1, during([]event{cleared()}, insert(64), lookup(0))},
		"not there, dropped":     {1, during([]event{cleared(), dropped(65)}, insert(64), lookup(64))},
		"not touched":            {1, append(sequence(insert(64), cleared()), later(lookup(64))...)},
		"erased":                 {0, during([]event{erased(), dropped(chosen)}, insert(chosen), lookup(0), insert(64), lookup(64))},
		"erased again":           {0, during([]event{erased(), dropped(chosen), dropped(chosen + 1)}, insert(chosen), lookup(0), insert(chosen+1), lookup(0))},
		"not erased":             {1, append(sequence(insert(chosen), erased()), later(lookup(chosen))...)},
		"erased, not chosen":     {1, during([]event{erased()}, insert(64), lookup(0))},
		"chosen after that":      {0, append(sequence(erased(), insert(chosen)), later(lookup(chosen))...)},
		"not there, erased":      {1, during([]event{erased(), dropped(chosen + 1)}, insert(chosen), lookup(chosen))},
		"dropped without clear":  {2, sequence(insert(64), dropped(64))},
		"an unknown kind":        {2, sequence(event{Kind: nrKinds})},
		"returns before called":  {2, []event{{Call: 2, Ret: 1}}},
		"a client in two places": {2, []event{{Call: 1, Ret: 4}, {Call: 2, Ret: 3}}},
		"a tick twice":           {2, []event{{Call: 1, Ret: 3}, {Call: 2, Ret: 3, Client: 1}}},
	} {
		if got := judged(t, file(modelMap, 1, c.events)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// later follows two overlapping events.
func later(events ...event) []event {
	for i := range events {
		events[i].Call, events[i].Ret = uint64(2*i+5), uint64(2*i+6)
	}
	return events
}

func TestIDs(t *testing.T) {
	full := func(last event) []event {
		var events []event
		for i := uint64(0); i < maxGroup; i++ {
			events = append(events, alloc(64+i, i, 1))
		}
		return sequence(append(events, last)...)
	}
	exchange := func(value, found uint64, done uint8) event {
		return event{Kind: opExchange, Value: value, Found: found, Done: done}
	}
	for name, c := range map[string]struct {
		want   int
		events []event
	}{
		"lowest":             {0, sequence(alloc(64, 0, 1), alloc(65, 1, 1), at(0, remove(64)), alloc(66, 0, 1), at(1, lookup(65)))},
		"reserved":           {0, sequence(alloc(0, 0, 1), lookup(0), exchange(64, 0, 1), lookup(64), remove(64))},
		"at":                 {0, sequence(at(5, insert(64)), at(5, exists(65, 0)), at(5, lookup(64)), alloc(66, 0, 1))},
		"full":               {0, full(alloc(64, 0, 0))},
		"not full":           {1, sequence(alloc(64, 0, 0))},
		"more than full":     {1, full(alloc(64, 3, 1))},
		"not the lowest":     {1, sequence(alloc(64, 1, 1))},
		"twice the same":     {1, together(alloc(64, 0, 1), alloc(65, 0, 1))},
		"reserved is taken":  {1, sequence(alloc(0, 0, 1), insert(64))},
		"nothing to replace": {1, sequence(exchange(64, 0, 1))},
		"something was":      {1, sequence(alloc(64, 0, 1), exchange(65, 0, 0))},
		"not found":          {1, sequence(alloc(64, 0, 1), lookup(0))},
		"of a neighbour":     {1, sequence(alloc(64, 0, 1), at(1, lookup(64)))},
	} {
		if got := judged(t, file(modelIDs, maxGroup, c.events)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestQueues(t *testing.T) {
	many := func(last event) []event {
		var events []event
		for i := uint64(1); i <= 100; i++ {
			events = append(events, insert(64*i))
		}
		for i := uint64(1); i < 100; i++ {
			events = append(events, remove(64*i))
		}
		return sequence(append(events, last)...)
	}
	empty := func(done uint8) event { return event{Kind: opLookup, Done: done} }
	for name, c := range map[string]struct {
		want   int
		events []event
	}{
		"in order":          {0, sequence(insert(64), insert(65), remove(64), insert(66), remove(65), remove(66), remove(0))},
		"two queues":        {0, sequence(at(1, insert(64)), at(2, insert(65)), at(2, remove(65)), at(1, remove(64)))},
		"many":              {0, many(remove(6400))},
		"either first":      {0, append(together(insert(64), insert(65)), later(remove(65), remove(64))...)},
		"empty":             {0, sequence(empty(0), insert(64), empty(1), remove(64), empty(0))},
		"overtaken":         {1, sequence(insert(64), insert(65), remove(65), remove(64))},
		"overtaken by many": {1, many(remove(6336))},
		"twice":             {1, append(together(remove(64), remove(64)), later(insert(64), remove(0))...)},
		"taken twice":       {1, sequence(insert(64), remove(64), remove(64))},
		"lost":              {1, sequence(insert(64), remove(0))},
		"not empty":         {1, sequence(insert(64), empty(0))},
		"nothing there":     {1, sequence(empty(1))},
	} {
		if got := judged(t, file(modelQueue, 1, c.events)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestFilesThatAreNotWhole(t *testing.T) {
	whole := file(modelMap, 1, sequence(insert(64), lookup(64)))
	if got := judged(t, whole); got != 0 {
		t.Fatalf("the whole file: %d", got)
	}
	for n := range whole {
		if got := judged(t, whole[:n]); got != 2 {
			t.Errorf("the first %d bytes: %d, want 2", n, got)
		}
	}
	if got := judged(t, append(whole, 0)); got != 2 {
		t.Errorf("a byte too many: %d, want 2", got)
	}
}

// Without overlaps, or with too few operations, the verdict is not "linearizable".
func TestTooLittle(t *testing.T) {
	for name, c := range map[string]struct {
		want   int
		least  uint64
		events []event
	}{
		"sequential": {2, 1, sequence(insert(64), lookup(64))},
		"too few":    {2, 3, together(insert(64), lookup(64))},
		"enough":     {0, 2, together(insert(64), lookup(64))},
	} {
		r, err := openHistory(bytes.NewReader(file(modelMap, 1, c.events)))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := check(r, options{limit: time.Minute, minOperations: c.least, minOverlaps: 1}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestStacks(t *testing.T) {
	empty := func(done uint8) event { return event{Kind: opLookup, Done: done} }
	for name, c := range map[string]struct {
		want   int
		events []event
	}{
		"newest first": {0, sequence(insert(64), insert(65), remove(65), insert(66), remove(66), remove(64), remove(0))},
		"two stacks":   {0, sequence(at(1, insert(64)), at(2, insert(65)), at(1, remove(64)), at(2, remove(65)))},
		"either first": {0, append(together(insert(64), insert(65)), later(remove(64), remove(65))...)},
		"empty":        {0, sequence(empty(0), insert(64), empty(1), remove(64), empty(0))},
		"oldest first": {1, sequence(insert(64), insert(65), remove(64), remove(65))},
		"twice":        {1, append(together(remove(64), remove(64)), later(insert(64), remove(0))...)},
		"lost":         {1, sequence(insert(64), remove(0))},
		"not empty":    {1, sequence(insert(64), empty(0))},
	} {
		if got := judged(t, file(modelStack, 1, c.events)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
