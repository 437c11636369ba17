package collection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

func entry(id, parent string, daysAgo int64, state store.State, tags ...string) Entry {
	e := Entry{Info: store.Info{ID: id, UpdatedAt: now - daysAgo*day, State: state}, Whole: true, Tags: tags}
	if parent != "" {
		e.Header.ParentSession = &parent
	}
	return e
}

const now = 2000 * day

func TestRulesAskForWhatIsOldAndNothingElse(t *testing.T) {
	unknown := entry("unknown", "", 900, store.StateOK)
	unknown.Whole = false
	entries := []Entry{
		entry("new", "", 5, store.StateOK),
		entry("old", "", 40, store.StateOK),
		entry("older", "", 400, store.StateOpenTurn),
		entry("starred", "", 400, store.StateOK, Star),
		entry("tagged", "", 400, store.StateOK, "a"),
		entry("broken", "", 900, store.StateDamaged),
		entry("in use", "", 900, store.StateLocked),
		unknown,
		entry("parent", "", 500, store.StateOK),
		entry("child of it", "parent", 35, store.StateOK),
		entry("young family", "", 500, store.StateOK),
		entry("young child", "young family", 1, store.StateOK),
		entry("loved family", "", 500, store.StateOK),
		entry("loved child", "loved family", 500, store.StateOK, Star),
		entry("ring 1", "ring 2", 400, store.StateOK),
		entry("ring 2", "ring 1", 400, store.StateOK),
	}
	archived := []Item{{ID: "put away", UpdatedAt: now - 400*day, At: now - day, Stage: here}, {ID: "put away, loved", UpdatedAt: now - 400*day, Starred: true, Stage: here},
		{ID: "half moved", UpdatedAt: now - 400*day, Stage: coming}}
	trashed := []Item{{ID: "thrown away", UpdatedAt: now - 900*day, At: now - 31*day, Stage: here}, {ID: "just now", UpdatedAt: now - 900*day, At: now, Stage: here}}
	got := map[string]string{}
	for _, d := range (Rules{Archive: 30, Trash: 300, Purge: 30}).Due(entries, archived, trashed, now) {
		got[d.ID] = d.Do
	}
	want := map[string]string{"old": "archive", "older": "trash", "tagged": "trash", "parent": "archive", "child of it": "archive",
		"ring 1": "trash", "ring 2": "trash", "put away": "trash", "thrown away": "purge"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := (Rules{}).Due(entries, archived, trashed, now); len(got) != 0 {
		t.Errorf("without rules: %+v", got)
	}
}

// Whoever comes from whom, everybody is in one family, and asking ends.
func TestAFamilyHasEveryDescendantOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "sessions")
		var entries []Entry
		for i := range n {
			parent := ""
			if p := rapid.IntRange(-1, n).Draw(t, "parent"); p >= 0 {
				parent = string(rune('a' + p))
			}
			entries = append(entries, entry(string(rune('a'+i)), parent, int64(i), store.StateOK))
		}
		f := FamilyOf(entries)
		for i := range entries {
			id := entries[i].ID
			seen := map[string]bool{}
			for _, e := range f.Below(id) {
				if seen[e.ID] || e.ID == id {
					t.Fatalf("%s is twice below %s", e.ID, id)
				}
				seen[e.ID] = true
				if root := f.Root(e.ID); f.Root(root) == "" {
					t.Fatalf("no root of %s", e.ID)
				}
			}
			for j := range entries {
				if e := &entries[j]; e.Parent() == id && e.ID != id && !seen[e.ID] {
					t.Fatalf("child %s is not below %s", e.ID, id)
				}
			}
		}
	})
}

func TestTagsAreFoldedInOrder(t *testing.T) {
	s, err := outcrop.New(outcrop.NewHeader("s", 1, ""), outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range []outcrop.OutcropTag{{Tag: "b", Set: true}, {Tag: "a", Set: true}, {Tag: "b"}, {Tag: "c"}, {Tag: "", Set: true}, {Tag: "b", Set: true}, {Tag: "a"}} {
		if _, err := s.Append(tag); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([]string{"b"}, Tags(s.Log())); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
