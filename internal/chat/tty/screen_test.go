package tty_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/internal/chat/tty"
	"github.com/outcrop-dev/outcrop/internal/chat/vt"
)

// What was printed stands above in order, once, and the live lines below it, as
// they were drawn last.
func TestTheScreenShowsWhatWasPrintedAndWhatIsLive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cols, rows := rapid.IntRange(4, 30).Draw(t, "cols"), rapid.IntRange(2, 8).Draw(t, "rows")
		term := vt.New(cols, rows)
		s := tty.NewScreen(term, cols, rows)
		line := rapid.StringMatching(`[a-z漢]{0,12}`)
		var printed []string
		for i := range rapid.IntRange(1, 12).Draw(t, "draws") {
			above := rapid.SliceOfN(line, 0, 12).Draw(t, fmt.Sprint("above", i))
			f := tty.Frame{Lines: rapid.SliceOfN(line, 0, s.MaxLive()).Draw(t, fmt.Sprint("live", i))}
			f.Row = rapid.IntRange(0, max(len(f.Lines)-1, 0)).Draw(t, "row")
			f.Col = rapid.IntRange(0, cols-1).Draw(t, "col")
			if rapid.Bool().Draw(t, "redraw") {
				s.Redraw()
			}
			if err := s.Draw(above, f); err != nil {
				t.Fatal(err)
			}
			printed = append(printed, above...)
			want := vt.New(cols, rows)
			for _, l := range printed {
				fmt.Fprintf(want, "%s\r\n", l)
			}
			fmt.Fprint(want, "\x1b[?7l"+strings.Join(f.Lines, "\r\n"))
			if got := term.String(); got != want.String() {
				t.Fatalf("shows\n%s\nwant\n%s", got, want)
			}
			row, col := term.Cursor()
			wantRow, _ := want.Cursor()
			if wantRow -= max(len(f.Lines)-1, 0) - f.Row; row != wantRow || col != f.Col {
				t.Fatalf("cursor at %d,%d, want %d,%d", row, col, wantRow, f.Col)
			}
			if len(term.Faults()) > 0 {
				t.Fatal(term.Faults())
			}
		}
		if err := s.End(); err != nil {
			t.Fatal(err)
		}
		want := vt.New(cols, rows)
		for _, l := range printed {
			fmt.Fprintf(want, "%s\r\n", l)
		}
		if got := term.String(); got != want.String() {
			t.Fatalf("at the end\n%s\nwant\n%s", got, want)
		}
	})
}

func TestNothingNewWritesNothing(t *testing.T) {
	term := vt.New(20, 5)
	s := tty.NewScreen(term, 20, 5)
	f := tty.Frame{Lines: []string{"one", "two"}, Row: 1, Col: 2}
	for range 3 {
		if err := s.Draw(nil, f); err != nil {
			t.Fatal(err)
		}
	}
	if n := term.Writes(); n != 1 {
		t.Errorf("%d writes", n)
	}
}

func TestMoreLiveLinesThanTheScreenHasKeepTheCursor(t *testing.T) {
	term := vt.New(20, 4)
	s := tty.NewScreen(term, 20, 4)
	var lines []string
	for i := range 10 {
		lines = append(lines, fmt.Sprint("line ", i))
	}
	if err := s.Draw(nil, tty.Frame{Lines: lines, Row: 8, Col: 1}); err != nil {
		t.Fatal(err)
	}
	if got, want := term.String(), "line 7\nline 8\nline 9\n"; got != want {
		t.Errorf("shows %q, want %q", got, want)
	}
	if row, _ := term.Cursor(); row != 1 {
		t.Errorf("cursor in row %d", row)
	}
}
