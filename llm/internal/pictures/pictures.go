// Package pictures decides which images of a request are sent, and what stands
// in the place of the others.
//
// An image in a log is a reference to an object; what it is, is found in the
// bytes of the object and not in the reference. It is left out when it is
// missing, of another type than PNG, JPEG, GIF and WebP, over 5 MB or over 8,000
// pixels a side. Providers also limit all images together: 20 when one of them is
// over 2,000 pixels a side, 100 at all, and the size of a body. When one more
// image goes over that, the oldest are left out, down to half of the limit, so
// that the beginning of a session's requests changes once in a while and not
// with each image. All of this follows from the images alone, in their order.
package pictures

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

const (
	maxSize       = 5_000_000 // bytes
	maxSide       = 8000      // pixels
	largeSide     = 2000      // pixels
	maxAmongLarge = 20        // images of which one is over largeSide
	maxImages     = 100
	maxBytes      = 7 << 20 // of all images as they are sent, in base64
)

// Rules are what providers decide differently.
type Rules struct {
	// Encoded says that the limit of 5 MB is for the image in base64.
	Encoded bool
}

// Album knows the images of a session's requests. The zero value has none.
type Album struct {
	seen  int // messages
	shots []shot
}

// shot is one image, in the order of the messages.
type shot struct {
	at    int // its message
	id    string
	note  string // why it is not sent, whatever the other images are
	media string
	size  int // in base64
	large bool
	data  []byte // while messages are encoded
	first int    // the first shot that is sent when this one is the last
}

// Image is an image as an encoder gets it: its bytes, or the text that stands
// in its place.
type Image struct {
	Media string
	Data  []byte
	Note  string
}

// Update takes in the messages of a request of which the first same ones are
// those of the update before. It returns the first message whose images are not
// what they were, at most same. The error is that of the context.
func (a *Album) Update(ctx context.Context, objects llm.Objects, messages []message.Message, same int, rules Rules) (from int, err error) {
	was := a.first()
	same = min(same, a.seen)
	known := len(a.shots)
	for known > 0 && a.shots[known-1].at >= same {
		known--
	}
	a.shots = a.shots[:known]
	for i := same; i < len(messages); i++ {
		for _, b := range of(&messages[i]) {
			s := shot{at: i, id: reference(b)}
			if err := s.read(ctx, objects, rules); err != nil {
				*a = Album{}
				return 0, err
			}
			a.shots = append(a.shots, s)
			a.choose()
		}
	}
	a.seen = len(messages)
	if k := min(was, a.first()); was != a.first() && k < known {
		return a.shots[k].at, nil
	}
	return same, nil
}

// Load reads the bytes of all images from message i on that are sent. Done lets
// go of them. The error is that of the context.
func (a *Album) Load(ctx context.Context, objects llm.Objects, i int, rules Rules) error {
	for k := len(a.shots) - 1; k >= a.first() && k >= 0 && a.shots[k].at >= i; k-- {
		if s := &a.shots[k]; s.data == nil {
			if err := s.read(ctx, objects, rules); err != nil {
				*a = Album{}
				return err
			}
		}
	}
	return nil
}

// Done lets go of the bytes that were read.
func (a *Album) Done() {
	for k := len(a.shots) - 1; k >= a.first() && k >= 0; k-- {
		a.shots[k].data = nil
	}
}

// At are the images of message i, those inside results too, in order.
func (a *Album) At(i int) []Image {
	k, _ := slices.BinarySearchFunc(a.shots, i, func(s shot, i int) int { return s.at - i })
	var out []Image
	for ; k < len(a.shots) && a.shots[k].at == i; k++ {
		s := &a.shots[k]
		switch {
		case s.note != "":
			out = append(out, Image{Note: Note(s.id, s.note)})
		case k < a.first():
			out = append(out, Image{Note: Note(s.id, "was left out: there are newer ones")})
		default:
			out = append(out, Image{Media: s.media, Data: s.data})
		}
	}
	return out
}

// first is the first shot that is sent.
func (a *Album) first() int {
	if n := len(a.shots); n > 0 {
		return a.shots[n-1].first
	}
	return 0
}

// choose decides where the shots that are sent begin, now that there is one
// more.
func (a *Album) choose() {
	last := len(a.shots) - 1
	first := 0
	if last > 0 {
		first = a.shots[last-1].first
	}
	images, large, size := 0, 0, 0
	for _, s := range a.shots[first:] {
		images, large, size = s.count(images, large, size, 1)
	}
	if images > maxImages || images > maxAmongLarge && large > 0 || size > maxBytes {
		for ; first < last && (images > maxImages/2 || images > maxAmongLarge/2 && large > 0 || size > maxBytes/2); first++ {
			images, large, size = a.shots[first].count(images, large, size, -1)
			a.shots[first].data = nil
		}
	}
	a.shots[last].first = first
}

func (s *shot) count(images, large, size, sign int) (int, int, int) {
	if s.note != "" {
		return images, large, size
	}
	if s.large {
		large += sign
	}
	return images + sign, large, size + sign*s.size
}

// read reads the object and decides whether it can be sent at all. Once that
// was denied it stays so.
func (s *shot) read(ctx context.Context, objects llm.Objects, rules Rules) error {
	if s.note != "" {
		return nil
	}
	var data []byte
	err := errors.New("no objects")
	if objects != nil {
		data, err = objects.Get(ctx, s.id)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		s.note = "is missing"
		return nil
	}
	media, width, height := Sniff(data)
	s.size = base64.StdEncoding.EncodedLen(len(data))
	size := len(data)
	if rules.Encoded {
		size = s.size
	}
	switch {
	case media == "":
		s.note = "was left out: it is no PNG, JPEG, GIF or WebP"
	case size > maxSize:
		s.note = "was left out: it is over 5 MB"
	case max(width, height) > maxSide:
		s.note = "was left out: it is over 8,000 pixels a side"
	default:
		s.media, s.large, s.data = media, max(width, height) > largeSide, data
	}
	return nil
}

func of(m *message.Message) []*message.Block {
	var out []*message.Block
	for i := range m.Content {
		b := &m.Content[i]
		if b.Type == message.ImageBlock {
			out = append(out, b)
		}
		for j := range b.Content {
			if b.Content[j].Type == message.ImageBlock {
				out = append(out, &b.Content[j])
			}
		}
	}
	return out
}

// LeftOut is the note for an image that a model does not take.
func LeftOut(b *message.Block) string {
	return Note(reference(b), "was left out: images are not sent to this model")
}

func reference(b *message.Block) string {
	id, _ := jsonwire.Text(jsonwire.Get(b.Attachment, "attachmentId"))
	return id
}

// Note is the text in the place of an image. It names the object by the
// beginning of its digest, so that two images are told apart.
func Note(id, what string) string {
	id = llm.Clean(id)
	if hex, ok := strings.CutPrefix(id, "sha256:"); ok && len(hex) > 12 {
		id = "sha256:" + hex[:12] + "..."
	}
	if strings.TrimSpace(id) == "" || len(id) > 80 {
		return "[an image " + what + "]"
	}
	return "[image " + id + " " + what + "]"
}
