package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire"
)

// both gives a log of the lines in each encoding.
func both(t *testing.T, lines []string, f func(t *testing.T, file []byte, enc wire.Encoding)) {
	t.Helper()
	t.Run("plain", func(t *testing.T) { f(t, plainLog(lines...), wire.Plain) })
	t.Run("zstd", func(t *testing.T) { f(t, zstdLog(frame(lines...)), wire.Zstd) })
}

func open(t *testing.T, file []byte, enc wire.Encoding) *wire.Reader {
	t.Helper()
	r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), enc)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOddContentIsReadAndWarnedOf(t *testing.T) {
	lines := []string{
		turnStart(0, 1),
		"",
		`{"type":"hook/invoked","seq":1,"time":1,"data":{"a":1,"b":[{"a":1,"\u0061":2}]}}`,
		turnStart(2, 1) + "\r",
		"  \t",
		"{\"type\":\"hook/invoked\",\"seq\":3,\"time\":1,\"data\":\"\xff\"}",
		`{"type":"hook/invoked","seq":4,"time":1,"data":[-0,1e999,12345678901234567890]}`,
		turnEnd(5, 1),
	}
	both(t, lines, func(t *testing.T, file []byte, enc wire.Encoding) {
		r := open(t, file, enc)
		r.CheckContent()
		n := 0
		for rec, err := range r.Records() {
			if err != nil {
				t.Fatal(err)
			}
			if want := lines[r.Pos().Line-2]; string(rec.Line()) != want {
				t.Errorf("line %d is %q, want %q", r.Pos().Line, rec.Line(), want)
			}
			n++
		}
		if n != 6 || r.Tail().Torn || r.Tail().Good != int64(len(file)) {
			t.Errorf("%d events, tail %+v", n, r.Tail())
		}
		list, count := r.Warnings()
		var got []string
		for _, w := range list {
			got = append(got, fmt.Sprintf("%s line %d event %d", w.Kind, w.Pos.Line, w.Seq))
		}
		want := []string{
			"BLANK_LINE line 3 event 1", "DUPLICATE_NAME line 4 event 1", "CRLF line 5 event 2",
			"BLANK_LINE line 6 event 3", "INVALID_UTF8 line 7 event 3", "NUMBER_LOSSY line 8 event 4",
		}
		if strings.Join(got, "; ") != strings.Join(want, "; ") || count != len(want) {
			t.Errorf("warnings %d: %s\nwant %s", count, strings.Join(got, "; "), strings.Join(want, "; "))
		}
	})
}

func TestOnlyTheFirstWarningsAreKept(t *testing.T) {
	lines := make([]string, 1000)
	r := open(t, plainLog(lines...), wire.Plain)
	for range r.Records() {
	}
	if list, n := r.Warnings(); len(list) != 100 || n != 1000 {
		t.Errorf("%d kept of %d", len(list), n)
	}
}

func TestARecordThatNestsTooDeeplyIsNamedAndPassedBy(t *testing.T) {
	deep := func(seq, n int) string {
		return fmt.Sprintf(`{"type":"hook/invoked","seq":%d,"time":1,"data":%s%s}`, seq, strings.Repeat("[", n), strings.Repeat("]", n))
	}
	both(t, []string{turnStart(0, 1), deep(1, 10_010), turnStart(2, 1), turnEnd(3, 1)}, func(t *testing.T, file []byte, enc wire.Encoding) {
		r := open(t, file, enc)
		var seqs []outcrop.Seq
		var named *outcrop.Error
		for rec, err := range r.Records() {
			if err != nil {
				if !errors.As(err, &named) {
					t.Fatal(err)
				}
				continue
			}
			seqs = append(seqs, rec.Seq)
		}
		if fmt.Sprint(seqs) != "[0 2 3]" || named == nil || named.Code != "RECORD_TOO_BIG" || named.Line != 3 || named.Seq != 1 {
			t.Errorf("events %v, error %+v", seqs, named)
		}
		want := int64(len(headerLine) + len(turnStart(0, 1)) + 2)
		if enc == wire.Zstd {
			want = int64(len(zstdLog()))
		}
		if named.Offset != want {
			t.Errorf("offset %d, want %d", named.Offset, want)
		}
	})
	// At the limit it is a record: the members data and [ are two levels.
	if got := readAll(plainLog(deep(0, 9_000)), wire.Plain); !got.OK || got.Events != 1 {
		t.Errorf("9,000 levels: %v", got)
	}
}

// repeat is a file whose middle is one byte many times.
type repeat struct {
	head, tail []byte
	c          byte
	n          int64
}

func (r *repeat) size() int64 { return int64(len(r.head)) + r.n + int64(len(r.tail)) }

func (r *repeat) ReadAt(b []byte, off int64) (n int, err error) {
	for n < len(b) {
		at := off + int64(n)
		switch h, rest := int64(len(r.head)), at-int64(len(r.head))-r.n; {
		case at < h:
			n += copy(b[n:], r.head[at:])
		case rest < 0:
			part := b[n:min(int64(len(b)), int64(n)-rest)]
			part[0] = r.c
			for k := 1; k < len(part); k *= 2 {
				copy(part[k:], part[:k])
			}
			n += len(part)
		case rest < int64(len(r.tail)):
			n += copy(b[n:], r.tail[rest:])
		default:
			return n, io.EOF
		}
	}
	return n, nil
}

func TestALongLineIsNamedInBoundedMemory(t *testing.T) {
	head := plainLog(turnStart(0, 1))
	for _, c := range []struct {
		name       string
		file       repeat
		events     int
		code, tail outcrop.Code
	}{
		{"a record of 260 MiB", repeat{append(head, `{"type":"hook/invoked","seq":1,"time":1,"data":"`...), []byte("\"}\n" + turnEnd(2, 1) + "\n"), 'x', 260 << 20}, 2, "RECORD_TOO_BIG", ""},
		{"260 MiB of zero bytes at the end", repeat{head, nil, 0, 260 << 20}, 1, "", "LINE_NOT_JSON"},
		{"260 MiB of zero bytes before a finished turn", repeat{head, []byte("\n" + turnEnd(1, 1) + "\n"), 0, 260 << 20}, 1, "LINE_NOT_JSON", "LINE_NOT_JSON"},
		{"an open record of 260 MiB at the end", repeat{append(head, `{"type":"x","data":"`...), nil, 'x', 260 << 20}, 1, "", "LINE_NO_NEWLINE"},
		{"a blank line of 260 MiB", repeat{head, []byte("\n" + turnEnd(1, 1) + "\n"), ' ', 260 << 20}, 2, "RECORD_TOO_BIG", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := wire.NewReader(&c.file, c.file.size(), wire.Plain)
			if err != nil {
				t.Fatal(err)
			}
			n, code := 0, outcrop.Code("")
			used := peak(func(look func()) {
				for rec, err := range r.Records() {
					if err != nil {
						code = outcrop.CodeOf(err)
						look()
						continue
					}
					n += rec.Count()
				}
				look()
			})
			if n != c.events || code != c.code || outcrop.CodeOf(r.Tail().Reason) != c.tail {
				t.Errorf("%d events, error %s, tail %+v", n, code, r.Tail())
			}
			if used > 64<<20 {
				t.Errorf("%d MiB are in use at the end", used>>20)
			}
		})
	}
}

func TestAFailingFileIsNoDamage(t *testing.T) {
	file := plainLog(turnStart(0, 1), turnEnd(1, 1))
	// The file is shorter than it was when its size was taken.
	r, err := wire.NewReader(bytes.NewReader(file), int64(len(file))+10, wire.Plain)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	var last error
	for _, err := range r.Records() {
		if err != nil {
			last = err
			continue
		}
		n++
	}
	if n != 2 || !errors.Is(last, io.ErrUnexpectedEOF) || errors.Is(last, outcrop.ErrDamaged) || r.Tail().Torn {
		t.Errorf("%d events, error %v, tail %+v", n, last, r.Tail())
	}
}

func TestDamageSaysWhere(t *testing.T) {
	both(t, []string{turnStart(0, 1), "{bad", turnEnd(1, 1)}, func(t *testing.T, file []byte, enc wire.Encoding) {
		r := open(t, file, enc)
		var e *outcrop.Error
		for _, err := range r.Records() {
			if err != nil && !errors.As(err, &e) {
				t.Fatal(err)
			}
		}
		if e == nil || !errors.Is(e, outcrop.ErrDamaged) || e.Code != "LINE_NOT_JSON" || e.Seq != 1 || e.Line != 3 || e.Hint == "" {
			t.Fatalf("error %+v", e)
		}
		want := int64(len(headerLine) + len(turnStart(0, 1)) + 2)
		if enc == wire.Zstd {
			want = int64(len(zstdLog()))
		}
		if e.Offset != want {
			t.Errorf("offset %d, want %d", e.Offset, want)
		}
	})
}

func TestReadingStopsWhenTheConsumerStops(t *testing.T) {
	// Long enough for the goroutines; the test binary would hang or race.
	lines := make([]string, 50_000)
	for i := range lines {
		lines[i] = turnStart(i, 1)
	}
	both(t, lines, func(t *testing.T, file []byte, enc wire.Encoding) {
		r := open(t, file, enc)
		for range 2 {
			n := 0
			for range r.Records() {
				if n++; n == 10 {
					break
				}
			}
		}
		n := 0
		for _, err := range r.Records() {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != len(lines) {
			t.Errorf("%d events", n)
		}
	})
}
