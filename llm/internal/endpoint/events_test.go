package endpoint

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func readAll(r io.Reader) (events []string, e *Events, err error) {
	e = NewEvents(r)
	for {
		data, err := e.Read()
		if err == io.EOF {
			return events, e, nil
		}
		if err != nil {
			return events, e, err
		}
		events = append(events, string(data))
	}
}

func TestEvents(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
	}{
		{"one event", "data: {\"a\":1}\n\n", []string{`{"a":1}`}},
		{"no space after the colon, no end", `data:{"a":1}`, []string{`{"a":1}`}},
		{"CRLF", "data: {}\r\n\r\ndata: {\"a\":1}\r\n\r\n", []string{"{}", `{"a":1}`}},
		{"CR", "data: {}\r\rdata: {\"a\":1}\r\r", []string{"{}", `{"a":1}`}},
		{"all ends mixed", "data: {\r\ndata: }\r\rdata: []\n\ndata: 1\r\n\n", []string{"{\n}", "[]", "1"}},
		{"a blank line of CRLF is one line", "data: [\r\ndata: ]\r\n\r\n", []string{"[\n]"}},
		{"names, ids, comments and white space", ": hi\n\nevent: x\nid: 1\nretry: 5\ndata: {}\n\n:\n\n\n\n", []string{"{}"}},
		{"no blank lines", "data: {}\ndata: {\"a\":1}\ndata: [DONE]\n", []string{"{}", `{"a":1}`, "[DONE]"}},
		{"a bare object", "{\"error\":1}\n", []string{`{"error":1}`}},
		{"a mark of byte order", "\ufeffdata: {}\n\n", []string{"{}"}},
		{"an empty data line", "data:\n\n", []string{""}},
		{"nothing", "", nil},
	}
	for _, tt := range tests {
		for name, r := range map[string]io.Reader{"at once": strings.NewReader(tt.in), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.in))} {
			got, e, err := readAll(r)
			if d := cmp.Diff(tt.want, got); d != "" || err != nil || e.Other {
				t.Errorf("%s, %s: %v\n%s", tt.name, name, err, d)
			}
		}
	}
}

// An event is given on when its end is there: nothing behind it is waited for.
func TestAnEventIsNotHeldBack(t *testing.T) {
	for _, end := range []string{"\n\n", "\r\n\r\n", "\r\r"} {
		r, w := io.Pipe()
		events := NewEvents(r)
		go w.Write([]byte("data: {}" + end))
		if data, err := events.Read(); string(data) != "{}" || err != nil {
			t.Errorf("%q: %q, %v", end, data, err)
		}
		r.Close()
	}
}

func TestWhatIsNoStreamShows(t *testing.T) {
	if _, e, _ := readAll(strings.NewReader("<!doctype html>\n")); !e.Other {
		t.Error("HTML does not show")
	}
}

// endless gives a text over and over.
type endless struct {
	text string
	rest string
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if e.rest == "" {
			e.rest = e.text
		}
		k := copy(p[n:], e.rest)
		e.rest = e.rest[k:]
		n += k
	}
	e.read += n
	return n, nil
}

func TestAnEventWithoutEndIsRefused(t *testing.T) {
	long := strings.Repeat("x", 16<<10)
	for name, text := range map[string]string{
		"one line":                          long,
		"many lines":                        "data: [\"" + long + "\",\n",
		"many lines that could be complete": "data: {}" + long + "\n",
	} {
		r := &endless{text: text}
		_, _, err := readAll(r)
		if !errors.Is(err, ErrTooLong) || r.read > 3*MaxEvent {
			t.Errorf("%s: %v after %d bytes", name, err, r.read)
		}
	}
}

// How a stream is cut into reads, and how its lines end, changes nothing.
func TestEventsDoNotDependOnReadsAndLineEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for range rapid.IntRange(0, 10).Draw(t, "lines") {
			text.WriteString(rapid.SampledFrom([]string{"data: {}", "data: [1,", "data: 2]", "", "", ": c", "event: x", "data: [DONE]", "{\"a\":1}"}).Draw(t, "line"))
			text.WriteString("\n")
		}
		want, _, _ := readAll(strings.NewReader(text.String()))
		for _, end := range []string{"\r\n", "\r"} {
			for _, r := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
				got, _, err := readAll(r(strings.NewReader(strings.ReplaceAll(text.String(), "\n", end))))
				if d := cmp.Diff(want, got); d != "" || err != nil {
					t.Fatalf("%q with %q: %v\n%s", text.String(), end, err, d)
				}
			}
		}
	})
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("data: {\"a\":1}\r\rdata: x\n\n: c\n{}"))
	f.Add([]byte("\ufeffdata:[\r\ndata:1]\n\ndata: [DONE]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, _, err := readAll(strings.NewReader(string(text)))
		b, _, _ := readAll(iotest.OneByteReader(strings.NewReader(string(text))))
		if err != nil || !cmp.Equal(a, b) {
			t.Fatalf("%v %q %q", err, a, b)
		}
	})
}
