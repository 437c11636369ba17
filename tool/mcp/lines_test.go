package mcp

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// read is what the client gets to see of a program's output, what it was told
// besides, and how it ended.
func read(r io.Reader) (messages, notified []string, odd int, err error) {
	var left allowance
	left.refill()
	l := newLines(r, &left, func(m string) { notified = append(notified, m) }, func([]byte) { odd++ })
	all, err := io.ReadAll(l)
	for line := range strings.Lines(string(all)) {
		messages = append(messages, strings.TrimSuffix(line, "\n"))
	}
	return messages, notified, odd, err
}

func TestOnlyMessagesThatAreOfUsePass(t *testing.T) {
	messages, notified, odd, err := read(strings.NewReader("hello\n" +
		`  {"jsonrpc":"2.0","id":1,"result":{}}` + " \r\n\n" +
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{}}` + "\n" +
		`{"jsonrpc":"2.0","id":null,"method":"x"}` + "\n" +
		`{"jsonrpc":"2.0","id":"q","method":"ping"}` + "\n" +
		`{"cut":` + "\n[1]\n7\n" +
		`{"jsonrpc":"2.0","id":2,"error":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":"q","method":"ping"}`, `{"jsonrpc":"2.0","id":2,"error":{}}`,
	}, messages); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"notifications/progress", "x"}, notified); d != "" || odd != 4 {
		t.Errorf("%s; %d odd lines", d, odd)
	}
}

func TestAMessageIsBoundedAndSoIsTheirSum(t *testing.T) {
	value := func(n int) string { return `{"id":1,"result":"` + strings.Repeat("x", n-21) + `"}` + "\n" }
	if m, _, _, err := read(strings.NewReader(value(maxLine))); err != nil || len(m) != 1 {
		t.Errorf("a message of %d bytes: %d, %v", maxLine, len(m), err)
	}
	if m, _, _, err := read(strings.NewReader(value(maxLine + 1))); !errors.Is(err, errTooMuch) || len(m) != 0 {
		t.Errorf("a message of %d bytes: %d, %v", maxLine+1, len(m), err)
	}
	if m, _, _, err := read(strings.NewReader(strings.Repeat(value(1<<20), 65))); !errors.Is(err, errTooMuch) || len(m) != 64 {
		t.Errorf("65 messages of 1 MiB: %d, %v", len(m), err)
	}
	if _, _, _, err := read(strings.NewReader(strings.Repeat(`{"id":1,"method":"m"}`+"\n", maxQuestions+1))); !errors.Is(err, errTooMuch) {
		t.Errorf("too many questions: %v", err)
	}
	broken := errors.New("broken")
	if m, _, _, err := read(io.MultiReader(strings.NewReader(value(100)), &failing{broken})); !errors.Is(err, broken) || len(m) != 1 {
		t.Errorf("%d, %v", len(m), err)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func FuzzLinesPassWholeMessagesOnly(f *testing.F) {
	f.Add([]byte("{\"id\":1}\n{\"method\":\"x\"}\nhello\n[{}]\n"))
	f.Add([]byte("{\"id\":{\"method\":1},\"method\":\"\\ud800\"}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		messages, _, _, err := read(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			if jsonwire.Valid([]byte(m)) != nil || m[0] != '{' {
				t.Errorf("passed: %q", m)
			}
			if _, isText := jsonwire.Text(jsonwire.Get([]byte(m), "method")); isText && jsonwire.Get([]byte(m), "id") == nil {
				t.Errorf("a notification passed: %q", m)
			}
			if !bytes.Contains(text, []byte(m)) {
				t.Errorf("changed: %q", m)
			}
		}
	})
}
