// SPDX-License-Identifier: MIT

package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sort"
)

// Kinds of operations, as in tests/linear/record.h.
const (
	opLookup = iota
	opInsert
	opSet
	opRemove
	opReplace
	opDiscard
	opAlloc
	opExchange
	opUpdate
	opClear
	opDrop
	opErase
	nrKinds
	// In no file: from the first to the second a clear takes out what it meets, as often as it likes.
	clearBegins
	clearEnds
)

const (
	modelMap   = 1
	modelIDs   = 2
	modelQueue = 3
	modelStack = 4
)

// An event is one operation: its arguments, its results, and its ticks.
type event struct {
	Call, Ret              uint64
	Value, Expected, Found uint64
	Key                    uint32
	Kind, Done             uint8
	Client                 uint16
}

const eventBytes = 48

type header struct {
	Magic        [8]byte
	Model, Group uint32
}

// reader reads the recorder's file, round by round.
type reader struct {
	in     *bufio.Reader
	head   header
	events uint64
}

func openHistory(in io.Reader) (*reader, error) {
	r := &reader{in: bufio.NewReaderSize(in, 1<<20)}
	if err := binary.Read(r.in, binary.LittleEndian, &r.head); err != nil {
		return nil, fmt.Errorf("no header: %w", err)
	}
	if string(r.head.Magic[:]) != "qlinear1" {
		return nil, errors.New("not a history")
	}
	if r.head.Model < modelMap || r.head.Model > modelStack || r.head.Group == 0 || r.head.Group > maxGroup {
		return nil, fmt.Errorf("unknown model %d, groups of %d", r.head.Model, r.head.Group)
	}
	return r, nil
}

func (r *reader) number() (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(r.in, b[:]); err != nil {
		return 0, fmt.Errorf("the file ends too early: %w", err)
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

// next returns nil after the last round, and an error if the file is incomplete.
func (r *reader) next() ([]event, error) {
	nr, err := r.number()
	if err != nil {
		return nil, err
	}
	if nr == 0 {
		all, err := r.number()
		if err == nil && all != r.events {
			err = fmt.Errorf("%d events instead of %d", r.events, all)
		}
		if _, more := r.in.ReadByte(); err == nil && more != io.EOF {
			err = errors.New("the file does not end where it should")
		}
		return nil, err
	}
	if nr > 1<<24 {
		return nil, fmt.Errorf("a round of %d events", nr)
	}
	events := make([]event, nr)
	var b [eventBytes]byte
	for i := range events {
		if _, err := io.ReadFull(r.in, b[:]); err != nil {
			return nil, fmt.Errorf("the file ends too early: %w", err)
		}
		events[i] = decode(b[:])
	}
	r.events += nr
	return events, r.wellFormed(events)
}

func decode(b []byte) event {
	word := binary.LittleEndian.Uint64
	return event{
		Call: word(b), Ret: word(b[8:]), Value: word(b[16:]), Expected: word(b[24:]), Found: word(b[32:]),
		Key: binary.LittleEndian.Uint32(b[40:]), Kind: b[44], Done: b[45], Client: binary.LittleEndian.Uint16(b[46:]),
	}
}

// wellFormed checks that operations of each client do not overlap, and that no tick occurs twice.  Events of values that a clear or an
// erasure has dropped follow it and have its ticks.
func (r *reader) wellFormed(events []event) error {
	last := map[uint16]uint64{}
	var before *event
	ticks := make([]uint64, 0, 2*len(events))
	for i := range events {
		e := &events[i]
		if e.Kind == opDrop {
			if before == nil || e.Client != before.Client || e.Call != before.Call || e.Ret != before.Ret {
				return fmt.Errorf("dropped, but not by the operation before it: %v", e)
			}
			continue
		}
		before = nil
		if e.Kind == opClear || e.Kind == opErase {
			before = e
		}
		switch {
		case e.Call >= e.Ret:
			return fmt.Errorf("it returned before it was called: %v", e)
		case e.Call <= last[e.Client]:
			return fmt.Errorf("its client was not done with another one: %v", e)
		case e.Kind >= nrKinds || e.Done > 1:
			return fmt.Errorf("unknown kind or result: %v", e)
		}
		last[e.Client] = e.Ret
		ticks = append(ticks, e.Call, e.Ret)
	}
	sort.Slice(ticks, func(i, j int) bool { return ticks[i] < ticks[j] })
	for i := 1; i < len(ticks); i++ {
		if ticks[i] == ticks[i-1] {
			return fmt.Errorf("tick %d is there twice", ticks[i])
		}
	}
	return nil
}

// split divides a history by keys (by groups of ids): the history is linearizable if each part is.
func split(events []event, group uint32) map[uint32][]*event {
	parts := map[uint32][]*event{}
	var clears []*event // clears and erasures, of all keys
	for i := range events {
		e := &events[i]
		if e.Kind == opClear || e.Kind == opErase {
			clears = append(clears, e)
			if e.Found == unknown {
				clears = append(clears, &event{Kind: clearBegins, Call: e.Call, Ret: e.Call, Client: e.Client},
					&event{Kind: clearEnds, Call: e.Ret, Ret: e.Ret, Client: e.Client})
			}
			continue
		}
		parts[e.Key/group] = append(parts[e.Key/group], e)
	}
	for key := range parts {
		parts[key] = append(parts[key], clears...)
		part := parts[key]
		sort.Slice(part, func(i, j int) bool { return part[i].Call < part[j].Call })
	}
	return parts
}

// overlaps counts operations that began before an earlier one of the part had returned.
// A history without any is sequential and proves little.
func overlaps(part []*event) (nr uint64) {
	var ret uint64
	for _, e := range part {
		if e.Call < ret {
			nr++
		}
		if e.Ret > ret {
			ret = e.Ret
		}
	}
	return nr
}
