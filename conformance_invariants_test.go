package outcrop_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
)

// companion is one of the two parts of the invariants.
type companion interface {
	Check(outcrop.Event) (outcrop.Violation, bool)
}

func companionOf(v vector) companion {
	if v.text("companion") == "compaction" {
		return &outcrop.CompactionInvariants{}
	}
	return &outcrop.TurnInvariants{}
}

func TestInvariantVectors(t *testing.T) {
	vectors(t, "invariants", func(t *testing.T, v vector) {
		var events []outcrop.Event
		for r, err := range records(v.events()) {
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, r.Event)
		}
		want := "null"
		if string(v.get("expect", "seed")) != "null" {
			want = violation(v.get("expect", "seed"))
		}
		if got := seedViolation(companionOf(v), events); got != want {
			t.Errorf("seed: %s, want %s", got, want)
		}
		if v.get("expect", "live") == nil {
			return
		}
		var live []string
		for _, x := range spans(v.get("expect", "live")) {
			live = append(live, violation(x))
		}
		// A vetoed event is not seen, and a neutral one stands in its place.
		var got []string
		c := companionOf(v)
		for _, e := range events {
			if x, bad := c.Check(e); bad {
				got = append(got, fmt.Sprint(x.Seq, " ", x.Label))
			}
		}
		if strings.Join(got, "\n") != strings.Join(live, "\n") {
			t.Errorf("live:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(live, "\n"))
		}
		// Both parts together find at least what each finds.
		if len(got) > 0 {
			var both outcrop.Invariants
			first := ""
			for _, e := range events {
				for _, x := range both.Check(e) {
					if first == "" && fmt.Sprint(x.Seq, " ", x.Label) == got[0] {
						first = got[0]
					}
				}
			}
			if first == "" {
				t.Errorf("the two parts together do not find %s", got[0])
			}
		}
	})
}

func violation(x []byte) string {
	v := vector{raw: x}
	return fmt.Sprint(v.num("seq"), " ", v.text("label"))
}

// seedViolation is the first violation of a seed. A turn bound inside a
// compaction bracket waits for the next event of a compaction: the end of a
// seed, or of the log, makes the bracket stale before that.
func seedViolation(c companion, events []outcrop.Event) string {
	waiting := false
	for _, e := range events {
		if e.Type == outcrop.TypeEndSeed {
			waiting = false
		}
		if waiting && strings.HasPrefix(string(e.Type), "compaction/") {
			return fmt.Sprint(e.Seq, " compaction-turn-boundary")
		}
		x, bad := c.Check(e)
		if !bad {
			continue
		}
		if x.Label != "compaction-turn-boundary" {
			return fmt.Sprint(x.Seq, " ", x.Label)
		}
		c.(*outcrop.CompactionInvariants).Apply(e)
		waiting = true
	}
	return "null"
}
