package jsonwire

import "errors"

// Visit walks the members of the object that begins at or after offset i, once,
// and returns the offset behind it. visit is told each name, as it stands
// between its quotes, and where its value begins; it returns the offset behind
// the value, when it has gone over it itself, or 0. So a text inside a deep value
// is passed over once, where Members passes over it once for each level.
//
// What is no object is skipped. Like Members it is for text that is known to be
// valid.
func Visit(b []byte, i int, visit func(key []byte, at int) (end int)) int {
	if i = Space(b, i); i >= len(b) || b[i] != '{' {
		return Skip(b, i)
	}
	for i++; ; i++ {
		i = Space(b, i)
		if i >= len(b) || b[i] != '"' {
			return closed(b, i)
		}
		end := SkipString(b, i)
		key := b[i+1 : max(i+1, end-1)]
		if i = Space(b, end); i >= len(b) || b[i] != ':' {
			return closed(b, i)
		}
		i = Space(b, i+1)
		if end = visit(key, i); end <= i {
			end = Skip(b, i)
		}
		if i = Space(b, end); i >= len(b) || b[i] != ',' {
			return closed(b, i)
		}
	}
}

// VisitElements is Visit for the elements of an array.
func VisitElements(b []byte, i int, visit func(at int) (end int)) int {
	if i = Space(b, i); i >= len(b) || b[i] != '[' {
		return Skip(b, i)
	}
	if i = Space(b, i+1); i < len(b) && b[i] == ']' {
		return i + 1
	}
	for i < len(b) {
		i = Space(b, i)
		end := visit(i)
		if end <= i {
			end = Skip(b, i)
		}
		if i = Space(b, end); i >= len(b) || b[i] != ',' {
			return closed(b, i)
		}
		i++
	}
	return len(b)
}

// closed is the offset behind the bracket at i.
func closed(b []byte, i int) int { return min(i+1, len(b)) }

// TextAt decodes the string that begins at offset i and returns the offset
// behind it. ok is false for another kind; end is 0 then.
func TextAt(b []byte, i int) (s string, end int, ok bool) {
	if i >= len(b) || b[i] != '"' {
		return "", 0, false
	}
	if end = SkipString(b, i); end-1 < i+1 {
		return "", 0, false
	}
	return Key(b[i+1 : end-1]), end, true
}

// Object checks that a text is one JSON object, white space around it allowed,
// and tells its members while it does: the name as it stands between its quotes,
// and the span of the value, which is valid, with the offset where it begins. The
// error is that of Valid, or ErrNotObject for a value of another kind.
func Object(b []byte, member func(key, value []byte, at int)) error {
	return WholeObject(b, func(key []byte, at int) (int, error) {
		end, err := Value(b, at)
		if err == nil {
			member(key, b[at:end:end], at)
		}
		return end, err
	})
}

// WholeObject is Object for who goes over values himself: member is told where a
// value begins, checks it, as Value and ObjectAt do, and returns the offset
// behind it.
func WholeObject(b []byte, member func(key []byte, at int) (end int, err error)) error {
	i := Space(b, 0)
	if i >= len(b) || b[i] != '{' {
		if err := Valid(b); err != nil {
			return err
		}
		return ErrNotObject
	}
	i, err := ObjectAt(b, i, member)
	if err != nil {
		return err
	}
	if i = Space(b, i); i != len(b) {
		return &SyntaxError{Offset: i, Msg: "trailing bytes after the object"}
	}
	return nil
}

// ObjectAt is WholeObject for the object whose opening brace stands at offset i
// of a text. It returns the offset behind it.
func ObjectAt(b []byte, i int, member func(key []byte, at int) (end int, err error)) (int, error) {
	i = Space(b, i+1)
	for first := true; ; first = false {
		if i >= len(b) {
			return i, &SyntaxError{Offset: i, Msg: "text ends inside an object"}
		}
		if b[i] == '}' && first {
			return i + 1, nil
		}
		if b[i] != '"' {
			return i, &SyntaxError{Offset: i, Msg: "member name missing"}
		}
		end, err := String(b, i)
		if err != nil {
			return i, err
		}
		key := b[i+1 : end-1]
		if i = Space(b, end); i >= len(b) || b[i] != ':' {
			return i, &SyntaxError{Offset: i, Msg: "colon missing"}
		}
		i = Space(b, i+1)
		if end, err = member(key, i); err != nil {
			return end, err
		}
		if i = Space(b, end); i < len(b) && b[i] == ',' {
			i = Space(b, i+1)
			continue
		}
		if i < len(b) && b[i] == '}' {
			return i + 1, nil
		}
		return i, &SyntaxError{Offset: i, Msg: "expected , or }"}
	}
}

// ErrNotObject is Object's error for JSON of another kind.
var ErrNotObject = errors.New("it is no JSON object")
