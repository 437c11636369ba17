package tty_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop/internal/chat/tty"
)

func TestKeysAreWhatATerminalSends(t *testing.T) {
	text := func(s string) tty.Key { return tty.Key{Name: tty.Text, Text: s} }
	name := func(n tty.Name) tty.Key { return tty.Key{Name: n} }
	for _, c := range []struct {
		name, sent string
		want       []tty.Key
	}{
		{"letters", "aé漢", []tty.Key{text("a"), text("é"), text("漢")}},
		{"Enter, and Ctrl-J for a new line", "\r\n", []tty.Key{name(tty.Enter), name(tty.NewLine)}},
		{"Alt-Enter is a new line", "\x1b\r", []tty.Key{name(tty.NewLine)}},
		{"Ctrl-Enter by its code", "\x1b[13;5u", []tty.Key{name(tty.NewLine)}},
		{"Shift-Enter too", "\x1b[13;2u", []tty.Key{name(tty.NewLine)}},
		{"Ctrl-Enter as xterm sends it", "\x1b[27;5;13~", []tty.Key{name(tty.NewLine)}},
		{"Enter by its code", "\x1b[13u", []tty.Key{name(tty.Enter)}},
		{"Ctrl-C, both ways", "\x03\x1b[99;5u", []tty.Key{{Name: tty.Ctrl, Text: "c"}, {Name: tty.Ctrl, Text: "c"}}},
		{"Escape by its code", "\x1b[27u", []tty.Key{name(tty.Escape)}},
		{"arrows, both ways", "\x1b[A\x1bOB\x1b[1;2C", []tty.Key{name(tty.Up), name(tty.Down), name(tty.Right)}},
		{"arrows by words", "\x1b[1;5D\x1b[1;3C", []tty.Key{name(tty.WordLeft), name(tty.WordRight)}},
		{"Alt and a letter", "\x1bb", []tty.Key{{Name: tty.Alt, Text: "b"}}},
		{"deleting", "\x7f\x1b\x7f\x1b[3~", []tty.Key{name(tty.Backspace), name(tty.WordBackspace), name(tty.Delete)}},
		{"Home and End, three ways", "\x1b[H\x1b[4~\x1b[7~", []tty.Key{name(tty.Home), name(tty.End), name(tty.Home)}},
		{"Tab and back", "\t\x1b[Z\x1b[9;2u", []tty.Key{name(tty.Tab), name(tty.BackTab), name(tty.BackTab)}},
		{"a paste is one key and sends nothing", "\x1b[200~one\r\ntwo\rthree\n\x1b[201~x",
			[]tty.Key{{Name: tty.Paste, Text: "one\ntwo\nthree\n"}, text("x")}},
		{"control characters of a paste are left out", "\x1b[200~a\x1b[31mb\x07\x1b[201~", []tty.Key{{Name: tty.Paste, Text: "a[31mb"}}},
		{"answers of the terminal are no keys", "\x1b[?62;22c\x1b]11;rgb:0/0/0\x07\x1bP1$r\x1b\\a", []tty.Key{text("a")}},
		{"what is unknown is no key", "\x1b[99~\x1b[57399ua", []tty.Key{text("a")}},
		{"bytes that are no text", "\xff\xfea", []tty.Key{text("a")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var whole, pieces tty.Decoder
			if diff := cmp.Diff(c.want, whole.Feed([]byte(c.sent))); diff != "" {
				t.Error(diff)
			}
			var got []tty.Key
			for i := range len(c.sent) {
				got = append(got, pieces.Feed([]byte{c.sent[i]})...)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error("byte by byte:", diff)
			}
		})
	}
}

func TestAnEscapeAloneIsTheKeyAfterAWhile(t *testing.T) {
	var d tty.Decoder
	if keys := d.Feed([]byte("\x1b")); len(keys) != 0 || !d.Waiting() {
		t.Fatalf("%v, waiting %v", keys, d.Waiting())
	}
	if diff := cmp.Diff([]tty.Key{{Name: tty.Escape}}, d.Flush()); diff != "" || d.Waiting() {
		t.Error(diff)
	}
	if keys := d.Feed([]byte("\x1b[200~half")); len(keys) != 0 || d.Waiting() || d.Flush() != nil {
		t.Error("a paste is not waited for to the end")
	}
}

func TestALongPasteIsCut(t *testing.T) {
	var d tty.Decoder
	d.Feed([]byte("\x1b[200~"))
	for range 40 {
		d.Feed([]byte(strings.Repeat("x", 64<<10)))
	}
	keys := d.Feed([]byte("\x1b[201~"))
	if len(keys) != 1 || len(keys[0].Text) != 1<<20 {
		t.Errorf("%d keys", len(keys))
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"abc", "\x1b[A", "\x1b[200~x\x1b[201~", "\x1b]0;t\x07", "\x1b[13;5u", "\xe6\xbc\xa2"} {
		f.Add([]byte(s), 1)
	}
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		var whole, pieces tty.Decoder
		want := append(whole.Feed(b), whole.Flush()...)
		if cut < 0 || cut > len(b) {
			cut = len(b) / 2
		}
		got := append(pieces.Feed(b[:cut]), pieces.Feed(b[cut:])...)
		got = append(got, pieces.Flush()...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		for _, k := range got {
			if !utf8.ValidString(k.Text) || k.Name != tty.Paste && strings.ContainsAny(k.Text, "\x1b\r\n") {
				t.Errorf("%+v", k)
			}
		}
	})
}
