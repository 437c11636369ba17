package outcrop

import (
	"bytes"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// scanRow reads a row that is spelled as every writer spells it, in one pass:
// no space between tokens, members in their usual order, plain integers that
// JavaScript writes the same way. ok is false for any other line, good or bad.
func scanRow(line []byte) (r Run, ok bool) {
	r.line = line[:len(line):len(line)]
	var s rowSpans
	i := len(`{"type":"text-chunks"`)
	switch {
	case bytes.HasPrefix(line, []byte(`{"type":"text-chunks"`)):
		r.kind = textRow
	case bytes.HasPrefix(line, []byte(`{"type":"reasoning-chunks"`)):
		r.kind, i = reasoningRow, len(`{"type":"reasoning-chunks"`)
	case bytes.HasPrefix(line, []byte(`{"type":"tool-call-chunks"`)):
		r.kind, i = callRow, len(`{"type":"tool-call-chunks"`)
	default:
		return r, false
	}
	word := func(w string) bool {
		if len(line)-i < len(w) || string(line[i:i+len(w)]) != w {
			return false
		}
		i += len(w)
		return true
	}
	// number takes a plain integer of at most 15 digits, so that it is safe.
	number := func() (n int64, tok []byte, ok bool) {
		start := i
		neg := i < len(line) && line[i] == '-'
		if neg {
			i++
		}
		first := i
		for i < len(line) && line[i]-'0' <= 9 {
			n = n*10 + int64(line[i]-'0')
			i++
		}
		if d := i - first; d == 0 || d > 15 || line[first] == '0' && (d > 1 || neg) {
			return 0, nil, false
		}
		if neg {
			n = -n
		}
		return n, line[start:i:i], true
	}
	text := func() []byte {
		if i >= len(line) || line[i] != '"' {
			return nil
		}
		end, err := jsonwire.String(line, i)
		if err != nil {
			return nil
		}
		tok := line[i:end:end]
		i = end
		return tok
	}
	var n int64
	if !word(`,"seq0":`) {
		return r, false
	}
	if n, _, ok = number(); !ok || n < 0 || !word(`,"time0":`) {
		return r, false
	}
	r.First = Seq(n)
	if r.time0, _, ok = number(); !ok || !word(`,"data":`) {
		return r, false
	}
	data := i
	if !word(`{"turn":`) {
		return r, false
	}
	if _, s.turn, ok = number(); !ok || !word(`,"step":`) {
		return r, false
	}
	if _, s.step, ok = number(); !ok || !word(`,"index":`) {
		return r, false
	}
	if _, s.index, ok = number(); !ok || !word(`,"dt":`) {
		return r, false
	}
	// The differences.
	start, steps, t := i, 0, r.time0
	if !word(`[`) {
		return r, false
	}
	if !word(`]`) {
		for {
			d, _, ok := number()
			if t += d; !ok || t > jsonwire.MaxSafe || t < -jsonwire.MaxSafe {
				return r, false
			}
			if steps++; word(`]`) {
				break
			}
			if !word(`,`) {
				return r, false
			}
		}
	}
	s.dt = line[start:i:i]
	if r.kind == callRow {
		if !word(`,"id":`) {
			return r, false
		}
		if s.id = text(); s.id == nil {
			return r, false
		}
		if word(`,"name":`) {
			if s.name = text(); s.name == nil {
				return r, false
			}
		}
		ok = word(`,"args":`)
	} else {
		ok = word(`,"texts":`)
	}
	start = i
	if !ok || !word(`[`) {
		return r, false
	}
	for {
		if i >= len(line) || line[i] != '"' {
			return r, false
		}
		// Most deltas are a few plain bytes.
		k := i + 1
		for k < len(line) && plainText[line[k]] {
			k++
		}
		if k < len(line) && line[k] == '"' {
			i = k + 1
		} else {
			end, err := jsonwire.String(line, i)
			if err != nil {
				return r, false
			}
			i = end
		}
		r.Len++
		if i >= len(line) {
			return r, false
		}
		if line[i] == ',' {
			i++
			continue
		}
		if line[i] == ']' {
			i++
			break
		}
		return r, false
	}
	s.members = line[start:i:i]
	if !word(`}`) {
		return r, false
	}
	r.dataOff, r.dataLen = uint32(data), uint32(i-data)
	if !word(`}`) || i != len(line) || steps != r.Len-1 || int64(r.First)+int64(r.Len)-1 > jsonwire.MaxSafe {
		return r, false
	}
	return r, true
}

// plainText are the bytes that stand in a string as themselves.
var plainText = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return t
}()
