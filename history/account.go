package history

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/meter"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// CacheEdit is what edits did to a provider's cache: what was foretold and
// what the next reply reported.
type CacheEdit struct {
	Edits []outcrop.Seq // the outcrop/edit events between two replies
	// Invalidated is the most that one of them was said to put out of the
	// cache, in tokens as estimated then: edits behind the first one of the
	// surface change nothing more.
	Invalidated int64
	// Held is what the last request before them had, in tokens as reported; 0
	// when it was not.
	Held int64
	Next outcrop.Seq // the reply after them, -1 when none came
	// Read is what that reply's request read from the cache, nil when the
	// provider did not say. Held - Read is what was really lost.
	Read *int64
}

// Lost is how many tokens of the request before the edits were not read from
// the cache after them; ok is false when it cannot be said.
func (c CacheEdit) Lost() (n int64, ok bool) {
	if c.Read == nil || c.Held == 0 {
		return 0, false
	}
	return max(c.Held-*c.Read, 0), true
}

// CacheAccount holds each group of edits of a log against the next reply.
func CacheAccount(log outcrop.Log) []CacheEdit {
	var list []CacheEdit
	var now *CacheEdit
	var held int64
	for r := range log.Records(0) {
		if r.Run != nil {
			continue
		}
		switch r.Type {
		case outcrop.TypeOutcropEdit:
			if now == nil {
				list = append(list, CacheEdit{Held: held, Next: -1})
				now = &list[len(list)-1]
			}
			now.Edits = append(now.Edits, r.Seq)
			if n, ok := jsonwire.Int(jsonwire.Get(r.Data, "cacheInvalidated")); ok {
				now.Invalidated = max(now.Invalidated, n)
			}
		case outcrop.TypeAssistantMessage:
			if !r.Op.IsAppend() {
				continue
			}
			u := message.ParseUsage(jsonwire.Get(r.Data, "usage"))
			if now != nil {
				now.Next = r.Seq
				if u != nil {
					now.Read = u.CacheReadTokens
				}
				now = nil
			}
			held = 0
			if u != nil {
				held, _ = meter.PromptTokens(u)
			}
		}
	}
	return list
}
