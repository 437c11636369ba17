package term_test

import (
	"testing"

	"github.com/outcrop-dev/outcrop/internal/term"
)

func TestColourIsOnlyForThoseWhoWantIt(t *testing.T) {
	if got := term.Style(true).Red("no"); got != "\x1b[31mno\x1b[0m" {
		t.Errorf("%q", got)
	}
	if got := term.Style(true).Red(""); got != "" {
		t.Errorf("nothing in colour is %q", got)
	}
	if got := term.Style(false).Red("no"); got != "no" {
		t.Errorf("%q", got)
	}
}
