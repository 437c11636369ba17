package term_test

import (
	"strings"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/internal/term"
)

func TestABarWaitsIsDrawnAndTakenAway(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	p := term.NewProgress(&out, func() time.Time { return now }, "reading", 100)
	p.At(10)
	if out.Len() > 0 {
		t.Fatalf("drawn at once: %q", out.String())
	}
	now = now.Add(2 * time.Second)
	p.At(50)
	drawn := "\rreading [###############               ]  50%"
	if out.String() != drawn {
		t.Fatalf("got %q, want %q", out.String(), drawn)
	}
	p.At(60) // too soon for another state
	p.End()
	p.End()
	now = now.Add(2 * time.Second)
	p.At(70)
	rest := strings.TrimPrefix(out.String(), drawn)
	if blank := "\r" + strings.Repeat(" ", len(drawn)-1) + "\r"; rest != blank {
		t.Errorf("taken away with %q, want %q", rest, blank)
	}
}

func TestABarThatNobodySeesPassesReadsOn(t *testing.T) {
	var none *term.Progress
	none.At(1)
	none.End()
	r := strings.NewReader("x")
	if none.Reader(r) != r {
		t.Error("the reader is another one")
	}
}
