package kept

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/message"
)

// runs encodes each run of one role as one text: its number, and the texts in
// brackets. It counts what it encodes.
type runs struct {
	messages []message.Message
	encoded  int
}

func (r *runs) End(i int) int {
	j := i + 1
	for j < len(r.messages) && r.messages[j].Role == r.messages[i].Role {
		j++
	}
	return j
}

func (r *runs) Append(dst []byte, i, j int, before int) ([]byte, int) {
	dst = fmt.Appendf(dst, "%d[", before+1)
	for ; i < j; i++ {
		dst = append(dst, r.messages[i].Content[0].Text...)
		r.encoded++
	}
	return append(dst, ']'), before + 1
}

func body(m *Messages[int], messages []message.Message, inserts ...Insert) (pieces [][]byte, encoded int) {
	r := &runs{messages: messages}
	m.Back(m.Same(messages), r)
	m.Encode(messages, r)
	return m.Pieces(nil, inserts...), r.encoded
}

func one(role message.Role, text string) message.Message {
	return message.Message{Role: role, Content: []message.Block{message.Text(text)}}
}

func TestWhatIsKeptIsNotEncodedAgain(t *testing.T) {
	a, b, c, d := one(message.User, "a"), one(message.Assistant, "b"), one(message.User, "c"), one(message.User, "d")
	var m Messages[int]
	for _, step := range []struct {
		name    string
		list    []message.Message
		want    string
		encoded int
	}{
		{"everything is new", []message.Message{a, b, c}, "1[a]2[b]3[c]", 3},
		{"nothing is new", []message.Message{a, b, c}, "1[a]2[b]3[c]", 0},
		{"the last group goes on", []message.Message{a, b, c, d}, "1[a]2[b]3[cd]", 2},
		{"a new group", []message.Message{a, b, c, d, b}, "1[a]2[b]3[cd]4[b]", 1},
		{"an edit in the middle", []message.Message{a, b, d, b}, "1[a]2[b]3[d]4[b]", 2},
		{"a shorter list", []message.Message{a}, "1[a]", 0},
		{"another beginning", []message.Message{c}, "1[c]", 1},
		{"nothing", nil, "", 0},
	} {
		pieces, encoded := body(&m, step.list)
		if got := string(bytes.Join(pieces, nil)); got != step.want || encoded != step.encoded {
			t.Errorf("%s: %s with %d messages encoded, want %s with %d", step.name, got, encoded, step.want, step.encoded)
		}
	}
}

func TestInsertsStandWhereTheyShould(t *testing.T) {
	var m Messages[int]
	list := []message.Message{one(message.User, "a"), one(message.Assistant, strings.Repeat("b", 9000)), one(message.User, "c")}
	pieces, _ := body(&m, list, Insert{0, 0, []byte("<0>")}, Insert{0, 4, []byte("<1>")}, Insert{1, 2, []byte("<2>")}, Insert{2, 3, []byte("<3>")})
	want := "<0>1[a]<1>2[<2>" + strings.Repeat("b", 9000) + "]3[c<3>]"
	if got := string(bytes.Join(pieces, nil)); got != want {
		t.Errorf("got %s", got)
	}
	if m.Groups() != 3 || m.Info(2) != 3 {
		t.Errorf("%d groups, the last is %d", m.Groups(), m.Info(2))
	}
}

// A short session takes little memory, a long one few pieces.
func TestChunksGrowWithTheSession(t *testing.T) {
	var m Messages[int]
	var list []message.Message
	for i := range 20_000 {
		role := message.User
		if i%2 == 1 {
			role = message.Assistant
		}
		list = append(list, one(role, strings.Repeat("x", 100)))
		if i == 9 {
			if pieces, _ := body(&m, list); len(pieces) != 1 || cap(pieces[0]) > minChunk {
				t.Errorf("10 messages take %d pieces of %d bytes", len(pieces), cap(pieces[0]))
			}
		}
	}
	if pieces, _ := body(&m, list); len(pieces) > 30 {
		t.Errorf("%d pieces", len(pieces))
	}
}

// Whatever a list becomes, the pieces are its text, and pieces of earlier lists
// stay what they were.
func TestPiecesAreTheTextOfTheList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Messages[int]
		var list []message.Message
		var earlier [][][]byte
		var texts []string
		for n := range rapid.IntRange(1, 12).Draw(t, "lists") {
			i := rapid.IntRange(0, len(list)).Draw(t, "start")
			if rapid.Bool().Draw(t, "grows") {
				i = len(list)
			}
			j := rapid.IntRange(i, len(list)).Draw(t, "end")
			next := slices.Clone(list[:i])
			for range rapid.IntRange(0, 3).Draw(t, "new") {
				next = append(next, one(rapid.SampledFrom([]message.Role{message.User, message.Assistant}).Draw(t, "role"), strings.Repeat(string(rune('a'+n)), rapid.SampledFrom([]int{1, 3000, 5000}).Draw(t, "length"))))
			}
			list = append(next, list[j:]...)
			pieces, _ := body(&m, list)
			var fresh Messages[int]
			want, _ := body(&fresh, list)
			earlier, texts = append(earlier, pieces), append(texts, string(bytes.Join(want, nil)))
			for k := range earlier {
				if got := string(bytes.Join(earlier[k], nil)); got != texts[k] {
					t.Fatalf("list %d after list %d: %.200q, want %.200q", k, n, got, texts[k])
				}
			}
		}
	})
}
