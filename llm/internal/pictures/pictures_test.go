package pictures

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/llm/internal/drawn"
	"github.com/outcrop-dev/outcrop/message"
)

func with(blocks ...message.Block) message.Message {
	return message.Message{Role: message.User, Content: blocks}
}

// shows is what an album makes of messages: for each image its media type, or
// its note.
func shows(t *testing.T, objects drawn.Objects, rules Rules, messages ...message.Message) (out []string) {
	t.Helper()
	var a Album
	if _, err := a.Update(t.Context(), objects, messages, 0, rules); err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		for _, p := range a.At(i) {
			if p.Note == "" && len(p.Data) == 0 {
				t.Errorf("message %d: an image without bytes", i)
			}
			out = append(out, p.Media+p.Note)
		}
	}
	return out
}

// padded is a PNG of a size in bytes.
func padded(n int) []byte { return append(drawn.PNG(3, 2), make([]byte, n-len(drawn.PNG(3, 2)))...) }

func TestWhatIsSentOfOneImage(t *testing.T) {
	o := drawn.Objects{}
	// in base64, 3,750,000 bytes are 5,000,000
	fits, over, large := padded(3_750_000), padded(3_750_001), padded(5_000_001)
	tests := []struct {
		name  string
		block message.Block
		rules Rules
		want  string
	}{
		{"a small one", o.Add(drawn.PNG(3, 2)), Rules{}, "image/png"},
		{"8,000 pixels a side", o.Add(drawn.PNG(1, 8000)), Rules{}, "image/png"},
		{"more pixels", o.Add(drawn.PNG(1, 8001)), Rules{}, "[image sha256:ID... was left out: it is over 8,000 pixels a side]"},
		{"5 MB in base64", o.Add(fits), Rules{Encoded: true}, "image/png"},
		{"more in base64", o.Add(over), Rules{Encoded: true}, "[image sha256:ID... was left out: it is over 5 MB]"},
		{"more in base64, where bytes count", o.Add(over), Rules{}, "image/png"},
		{"more bytes", o.Add(large), Rules{}, "[image sha256:ID... was left out: it is over 5 MB]"},
		{"another type", o.Add([]byte("<svg>")), Rules{}, "[image sha256:ID... was left out: it is no PNG, JPEG, GIF or WebP]"},
		{"a missing object", drawn.Image("sha256:" + strings.Repeat("ab", 32)), Rules{}, "[image sha256:ID... is missing]"},
		{"no reference", message.Block{Type: message.ImageBlock}, Rules{}, "[an image is missing]"},
		{"a reference that cannot be sent", drawn.Image(`\ud800\u0000`), Rules{}, "[image \ufffd\ufffd is missing]"},
	}
	for _, tt := range tests {
		want := tt.want
		if id := reference(&tt.block); strings.HasPrefix(id, "sha256:") {
			want = strings.Replace(want, "ID", id[7:19], 1)
		}
		if got := shows(t, o, tt.rules, with(tt.block)); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", tt.name, got, want)
		}
	}
	if got := shows(t, nil, Rules{}, with(drawn.Image("sha256:x"))); len(got) != 1 || got[0] != "[image sha256:x is missing]" {
		t.Errorf("without objects: %q", got)
	}
}

func TestTheOldestImagesAreLeftOut(t *testing.T) {
	o := drawn.Objects{}
	small, wide, heavy := o.Add(drawn.PNG(3, 2)), o.Add(drawn.PNG(2001, 1)), o.Add(padded(1_500_000))
	many := func(n int, b message.Block) (out []message.Message) {
		for range n {
			out = append(out, with(b))
		}
		return out
	}
	tests := []struct {
		name string
		in   []message.Message
		sent int // of the newest
	}{
		{"20 large ones", many(20, wide), 20},
		{"21 large ones", many(21, wide), 10},
		{"30 large ones", many(30, wide), 19},
		{"21 small ones", many(21, small), 21},
		{"20 small ones and then a large one", append(many(20, small), with(wide)), 10},
		{"a large one and then 20 small ones", append(many(1, wide), many(20, small)...), 20},
		{"100 small ones", many(100, small), 100},
		{"101 small ones", many(101, small), 50},
		{"those that are never sent do not count", append(many(30, drawn.Image("x")), many(20, wide)...), 20},
		{"3 heavy ones", many(3, heavy), 3},
		{"4 heavy ones", many(4, heavy), 1},
		{"several in one message", []message.Message{with(wide, message.ToolResult("c", false, message.Text("a"), wide), wide)}, 3},
	}
	for _, tt := range tests {
		sent := 0
		got := shows(t, o, Rules{}, tt.in...)
		for i, s := range got {
			if !strings.HasPrefix(s, "[") {
				sent++
			} else if sent > 0 {
				t.Errorf("%s: image %d is left out behind one that is sent", tt.name, i)
			}
		}
		if sent != tt.sent {
			t.Errorf("%s: %d are sent, want %d", tt.name, sent, tt.sent)
		}
	}
}

type slow struct {
	drawn.Objects
	cancel func()
}

func (s slow) Get(context.Context, string) ([]byte, error) {
	s.cancel()
	return nil, errors.New("too late")
}

// A call that was given up does not make an image missing for good.
func TestACancelledReadIsNotAMissingImage(t *testing.T) {
	o := drawn.Objects{}
	messages := []message.Message{with(o.Add(drawn.PNG(3, 2)))}
	var a Album
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := a.Update(ctx, slow{o, cancel}, messages, 0, Rules{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if from, err := a.Update(t.Context(), o, messages, 1, Rules{}); from != 0 || err != nil {
		t.Fatalf("from %d, %v", from, err)
	}
	if got := a.At(0); len(got) != 1 || got[0].Note != "" {
		t.Errorf("%+v", got)
	}
}

// An album that grew, or went back, says what one from nothing says, and names
// the first message that changed.
func TestAnAlbumAgreesWithOneFromNothing(t *testing.T) {
	o := drawn.Objects{}
	pool := []message.Block{o.Add(drawn.PNG(3, 2)), o.Add(drawn.PNG(2001, 1)), o.Add(drawn.PNG(2500, 1)), drawn.Image("gone"), message.Text("a")}
	rapid.Check(t, func(t *rapid.T) {
		var a Album
		var messages []message.Message
		var before [][]Image
		for range rapid.IntRange(1, 6).Draw(t, "requests") {
			same := rapid.IntRange(0, len(messages)).Draw(t, "same")
			if rapid.Bool().Draw(t, "grows") {
				same = len(messages)
			}
			messages = append([]message.Message(nil), messages[:same]...)
			for range rapid.IntRange(0, 30).Draw(t, "new") {
				messages = append(messages, with(rapid.SliceOfN(rapid.SampledFrom(pool), 0, 3).Draw(t, "blocks")...))
			}
			from, err := a.Update(t.Context(), o, messages, same, Rules{})
			if err == nil {
				err = a.Load(t.Context(), o, 0, Rules{})
			}
			var fresh Album
			if _, err := fresh.Update(t.Context(), o, messages, 0, Rules{}); err != nil {
				t.Fatal(err)
			}
			var now [][]Image
			for i := range messages {
				now = append(now, a.At(i))
				if d := cmp.Diff(fresh.At(i), now[i]); d != "" || err != nil {
					t.Fatalf("message %d: %v\n%s", i, err, d)
				}
				if i < from && !cmp.Equal(before[i], now[i]) {
					t.Fatalf("message %d changed, but only those from %d on were named", i, from)
				}
			}
			before = now
			a.Done()
			for i := range a.shots {
				if a.shots[i].data != nil {
					t.Fatalf("the bytes of image %d are held", i)
				}
			}
		}
	})
}
