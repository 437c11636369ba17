package arrays

import (
	"errors"
	"fmt"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// readable is a text that was checked, with null for what in it nests too deeply,
// see shallow.
func readable(text []byte) (out []byte, gone deep, err error) {
	if err = jsonwire.Valid(text); !errors.Is(err, jsonwire.ErrDepth) {
		return text, gone, err
	}
	if out, gone = shallow(text, jsonwire.MaxReadDepth); !gone.any() || jsonwire.Valid(out) != nil {
		return text, gone, err
	}
	return out, gone, nil
}

// deep is what was left out of a text because it nests too deeply.
type deep struct {
	messages []int // places in the list
	members  int64 // of those beside the list
}

func (d deep) any() bool { return len(d.messages) > 0 || d.members > 0 }

func (d deep) tell(r *exchange.Report, line int64) {
	for range d.messages {
		r.Dropped("message", tooDeep, line)
	}
	for range d.members {
		r.Dropped("member beside the messages", tooDeep, line)
	}
}

var tooDeep = fmt.Sprintf("its values are nested more than %d deep", jsonwire.MaxReadDepth)

// shallow is a text with null in the place of each message that is nested more
// than most deep, and of each member beside the list that is. It looks at brackets alone: what
// it gives is not known to be JSON.
func shallow(text []byte, most int) (out []byte, gone deep) {
	at := jsonwire.Space(text, 0)
	object := at < len(text) && text[at] == '{' // of a body; else a list
	depth, unit := 0, 1                         // of the list's elements, or of a body's members
	start, deepest, index, done := -1, 0, 0, 0
	list := false // the last name of a body was that of the list
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '"':
			end, err := jsonwire.String(text, i)
			if err != nil {
				return text, deep{}
			}
			if object && depth == 1 {
				list = jsonwire.Key(text[i+1:end-1]) == "messages"
			}
			i = end - 1
		case '{', '[':
			switch {
			case depth == 1 && object && list && text[i] == '[':
				unit, index = 2, 0
				// Of two lists the later one counts.
				gone.messages, gone.members = nil, gone.members+int64(len(gone.messages))
			case depth == unit:
				start, deepest = i, 0
			}
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			if depth--; depth < 0 {
				return text, deep{}
			}
			if depth == unit && start >= 0 {
				if deepest > most {
					out = append(append(out, text[done:start]...), "null"...)
					done = i + 1
					if object && unit == 1 {
						gone.members++
					} else {
						gone.messages = append(gone.messages, index)
					}
				}
				start = -1
			}
			if object && depth == 1 {
				unit, list = 1, false
			}
		case ',':
			if depth == unit {
				index++
			}
		}
	}
	return append(out, text[done:]...), gone
}
