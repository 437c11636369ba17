package brief

import (
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// Call is what a call does, in a few words: its path or its command, else
// its arguments as they are.
func Call(args string) string {
	for _, name := range [...]string{"command", "path"} {
		if s, ok := jsonwire.Text(jsonwire.Get([]byte(args), name)); ok {
			return term.OneLine(s)
		}
	}
	return term.OneLine(args)
}

// Arguments shows the arguments of a call: the value alone when there is
// one plain member, else the JSON text.
func Arguments(args string) string {
	if jsonwire.Valid([]byte(args)) != nil {
		return args
	}
	n, value := 0, ""
	for _, v := range jsonwire.Members([]byte(args)) {
		n++
		s, ok := jsonwire.Text(v)
		if !ok {
			s = string(v)
		}
		value = s
	}
	if n == 1 {
		return value
	}
	if n == 0 {
		return ""
	}
	return args
}
