package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// maxDepth is how deep a message may be nested. The SDK passes over a deeper one
// without a word, so that a call would wait for its answer until its time is up.
const maxDepth = 1_000

// codeTooDeep is the code of the error that takes the place of such an answer.
const codeTooDeep = -32098

// mend makes of an answer one that the SDK can read where it could not: one that
// is nested too deep becomes an error, and content of a kind that the SDK does not
// know a text that says so, for the call was done. Other messages stay as they
// are, and so do texts that are no JSON.
func mend(msg []byte) []byte {
	if depth(msg) > maxDepth {
		id := jsonwire.Get(msg, "id")
		if k := jsonwire.Kind(id); k != '"' && k != '0' || jsonwire.Valid(id) != nil || jsonwire.Get(msg, "method") != nil {
			return msg
		}
		said := jsonwire.AppendIntMember([]byte{'{'}, "code", codeTooDeep)
		said = jsonwire.AppendStringMember(said, "message", fmt.Sprintf("it is nested deeper than %d levels", maxDepth))
		out := jsonwire.AppendStringMember([]byte{'{'}, "jsonrpc", "2.0")
		out = jsonwire.AppendRawMember(out, "id", id)
		return append(jsonwire.AppendRawMember(out, "error", append(said, '}')), '}')
	}
	content := jsonwire.Get(jsonwire.Get(msg, "result"), "content")
	if jsonwire.Kind(content) != '[' {
		return msg
	}
	unknown := false
	list := []byte{'['}
	for part := range jsonwire.Elements(content) {
		if len(list) > 1 {
			list = append(list, ',')
		}
		if jsonwire.Kind(part) != '{' || knownKind(jsonwire.Get(part, "type")) {
			list = append(list, part...)
			continue
		}
		unknown = true
		kind, _ := jsonwire.Text(jsonwire.Get(part, "type"))
		block := jsonwire.AppendStringMember([]byte{'{'}, "type", "text")
		block = jsonwire.AppendStringMember(block, "text", note("content of an unknown kind", kind, "not shown").Text)
		list = append(append(list, block...), '}')
	}
	if !unknown || jsonwire.Valid(msg) != nil {
		return msg
	}
	return with(msg, "result", with(jsonwire.Get(msg, "result"), "content", append(list, ']')))
}

// with is an object with another value in the place of the member called name.
func with(obj []byte, name string, value []byte) []byte {
	out := []byte{'{'}
	for k, v := range jsonwire.Members(obj) {
		if jsonwire.KeyIs(k, name) {
			v = value
		}
		out = jsonwire.AppendRawMember(out, jsonwire.Key(k), v)
	}
	return append(out, '}')
}

// knownKind reports a kind of content that the SDK reads.
func knownKind(token []byte) bool {
	for _, kind := range [...]string{"text", "image", "audio", "resource_link", "resource", "tool_use", "tool_result"} {
		if jsonwire.TextIs(token, kind) {
			return true
		}
	}
	return false
}

// depth is how deep a text is nested.
func depth(b []byte) (most int) {
	now := 0
	for i := 0; i < len(b); {
		switch b[i] {
		case '"':
			i = jsonwire.SkipString(b, i)
			continue
		case '{', '[':
			now++
			most = max(most, now)
		case '}', ']':
			now--
		}
		i++
	}
	return most
}

// mended is the body of an HTTP answer, each message in it mended: the whole of
// it, or the data of each event of a stream.
func mended(resp *http.Response) io.ReadCloser {
	switch media(resp) {
	case "application/json":
		return readCloser{&whole{r: resp.Body}, resp.Body}
	case "text/event-stream":
		return readCloser{&events{r: bufio.NewReaderSize(resp.Body, 64<<10)}, resp.Body}
	}
	return resp.Body
}

// whole reads one message to its end before it gives anything of it.
type whole struct {
	r    io.Reader
	rest *bytes.Reader
}

func (w *whole) Read(p []byte) (int, error) {
	if w.rest == nil {
		b, err := io.ReadAll(w.r)
		if err != nil {
			return 0, err
		}
		w.rest = bytes.NewReader(mend(b))
	}
	return w.rest.Read(p)
}

// events reads an event stream line by line.
type events struct {
	r    *bufio.Reader
	rest []byte
	err  error
}

func (e *events) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		var line []byte
		for e.err = bufio.ErrBufferFull; errors.Is(e.err, bufio.ErrBufferFull); {
			var part []byte
			part, e.err = e.r.ReadSlice('\n')
			if line = append(line, part...); len(line) > maxLine {
				return 0, fmt.Errorf("%w: a message of over %d bytes", errTooMuch, maxLine)
			}
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			// A message has no newline in it, or it could not be one line.
			msg := bytes.TrimSpace(data)
			if better := mend(msg); !bytes.Equal(better, msg) {
				line = append(append([]byte("data: "), better...), '\n')
			}
		}
		e.rest = line
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}
