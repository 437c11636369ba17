package growth

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/message"
)

func one(text string) message.Message {
	return message.Message{Role: message.User, Content: []message.Block{message.Text(text)}}
}

func same(s *Seen, list []message.Message) int {
	return s.Same(len(list), func(i int) (int64, *message.Message) { return 0, &list[i] })
}

// take does what the users of a Seen do: forget what differs, remember the rest.
func take(s *Seen, list []message.Message) int {
	n := same(s, list)
	s.Cut(n)
	for i := n; i < len(list); i++ {
		s.Add(0, &list[i])
	}
	return n
}

func TestSame(t *testing.T) {
	a, b, c, d := one("a"), one("b"), one("c"), one("d")
	list := make([]message.Message, 0, 8)
	list = append(list, a, b, c)
	tests := []struct {
		name string
		next []message.Message
		want int
	}{
		{"the same list", list, 3},
		{"a list that grew", append(list, d), 3},
		{"a copy", slices.Clone(list), 3},
		{"a copy that grew", append(slices.Clone(list), d), 3},
		{"a beginning", list[:2], 2},
		{"another element in a copy", []message.Message{a, d, c}, 1},
		{"equal text in other memory", []message.Message{a, one("b"), c}, 1},
		{"another role", []message.Message{{Role: message.Assistant, Content: a.Content}}, 0},
		{"more content", []message.Message{{Role: message.User, Content: append(a.Content[:1:1], b.Content...)}}, 0},
		{"nothing", nil, 0},
	}
	for _, tt := range tests {
		var s Seen
		take(&s, list)
		if got := same(&s, tt.next); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// A list that was cut and filled again in its own array is no copy, which it
// should be; what is new at its end shows it all the same.
func TestAListThatWasFilledAgainIsSeen(t *testing.T) {
	list := []message.Message{one("a"), one("b"), one("c")}
	var s Seen
	take(&s, list)
	list = append(list[:1], one("x"), one("y"))
	if got := same(&s, list); got != 1 {
		t.Errorf("%d messages are the same, want 1", got)
	}
}

// The quick answer for a list that grew is the answer of a look at each.
func TestSameIsTheLongestCommonBeginning(t *testing.T) {
	pool := []message.Message{one("a"), one("b"), one("c"), {Role: message.User}}
	rapid.Check(t, func(t *rapid.T) {
		var s Seen
		var before, list []message.Message
		for range rapid.IntRange(1, 10).Draw(t, "lists") {
			switch rapid.IntRange(0, 2).Draw(t, "change") {
			case 0:
				list = slices.Clone(list[:rapid.IntRange(0, len(list)).Draw(t, "cut")])
			case 1:
				if len(list) > 0 {
					list = slices.Clone(list)
					list[rapid.IntRange(0, len(list)-1).Draw(t, "at")] = rapid.SampledFrom(pool).Draw(t, "other")
				}
			}
			for range rapid.IntRange(0, 3).Draw(t, "more") {
				list = append(list, rapid.SampledFrom(pool).Draw(t, "new"))
			}
			want := 0
			for want < min(len(before), len(list)) && identify(0, &before[want]) == identify(0, &list[want]) {
				want++
			}
			if got := take(&s, list); got != want {
				t.Fatalf("%d messages are the same, want %d", got, want)
			}
			before = slices.Clone(list)
		}
	})
}
