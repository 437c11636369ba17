package llmtest

import (
	"iter"
	"slices"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// entry is one message of a body in a form that both dialects share.
type entry struct {
	index int
	role  string // system, user, assistant, or tool
	parts []part
	// nothing says that content is null or absent.
	nothing bool
}

type partKind int

const (
	textPart partKind = iota
	imagePart
	callPart
	resultPart
	thinkingPart
)

// part is one block of content, one call or one result.
type part struct {
	kind    partKind
	text    string // of text and thinking
	id      string // of a call, and of the call that a result is for
	name    string // of a call
	content []part // of a result
	nothing bool   // a result without content

	media   string // of an image: what the body says it is
	data    []byte // of an image, decoded; nil when the body names an address
	encoded int    // of an image: bytes it takes in the body
	bad     string // of an image: why there is no data

	signature string // of thinking
	marked    bool   // it has cache_control
}

// all yields the parts of a message, those inside results too.
func (e *entry) all() iter.Seq[*part] {
	return func(yield func(*part) bool) {
		for i := range e.parts {
			if !yield(&e.parts[i]) {
				return
			}
			for j := range e.parts[i].content {
				if !yield(&e.parts[i].content[j]) {
					return
				}
			}
		}
	}
}

// of yields the parts of one kind.
func (e *entry) of(kind partKind) iter.Seq[*part] {
	return func(yield func(*part) bool) {
		for i := range e.parts {
			if e.parts[i].kind == kind && !yield(&e.parts[i]) {
				return
			}
		}
	}
}

func (e *entry) has(kind partKind) bool {
	for range e.of(kind) {
		return true
	}
	return false
}

// unknown is rule 9 for one object: no member but those that are known.
func (e *entry) unknown(where string, obj []byte, known ...string) *Refusal {
	if jsonwire.Kind(obj) != '{' {
		return refuse(9, e.index, "%s is not an object", where)
	}
	for k := range jsonwire.Members(obj) {
		if name := jsonwire.Key(k); !slices.Contains(known, name) {
			return refuse(9, e.index, "%s has the unknown member %q", where, name)
		}
	}
	return nil
}
