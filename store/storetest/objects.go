package storetest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
	"github.com/outcrop-dev/outcrop/store/memory"
)

func objectsOf(t *testing.T, st store.Store) store.Objects {
	t.Helper()
	o := store.ObjectsOf(st)
	if o == nil {
		t.Fatalf("%s keeps no attachments", st.Address())
	}
	return o
}

func attachments(t *testing.T, p Place) {
	o := objectsOf(t, p.Open())
	b := []byte("\x89PNG bytes")
	_, err := o.Get(bg, blob.ID(b))
	wantErr(t, err, outcrop.ErrNotFound)
	for range 2 {
		id, err := o.Put(bg, b)
		ok(t, err)
		if id != blob.ID(b) {
			t.Fatalf("the id is %s, want %s", id, blob.ID(b))
		}
	}
	for _, o := range []store.Objects{o, objectsOf(t, p.Open())} {
		got, err := o.Get(bg, blob.ID(b))
		ok(t, err)
		if !bytes.Equal(got, b) {
			t.Fatalf("got %q", got)
		}
		got[0] = 'x' // what a caller does to its bytes is its own business
	}
	got, err := o.Get(bg, blob.ID(b))
	if err != nil || !bytes.Equal(got, b) {
		t.Fatalf("the object changed: %q, %v", got, err)
	}
	for _, id := range []string{"", "sha256:", blob.ID(b)[7:], "sha256:" + strings.ToUpper(blob.ID(b)[7:]), "sha256:../../../x"} {
		_, err := o.Get(bg, id)
		wantErr(t, err, outcrop.ErrRefused)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	_, err = o.Put(ctx, []byte("more"))
	wantErr(t, err, context.Canceled)
	_, err = o.Get(ctx, blob.ID(b))
	wantErr(t, err, context.Canceled)
	// Objects are no sessions.
	infos, err := p.Open().List(bg, store.ListOptions{})
	ok(t, err)
	if len(infos) != 0 {
		t.Fatalf("listed as %v", infos)
	}
}

// image is a block that names an object.
func image(id string) message.Block {
	return message.Block{Type: message.ImageBlock, Attachment: fmt.Appendf(nil,
		`{"attachmentId":%q,"mediaType":"image/png","width":1,"height":1,"bytes":9}`, id)}
}

func copiedAttachments(t *testing.T, p Place) {
	src := p.Open()
	o := objectsOf(t, src)
	shown, err := o.Put(bg, []byte("shown"))
	ok(t, err)
	inResult, err := o.Put(bg, []byte("in a result"))
	ok(t, err)
	_, err = o.Put(bg, []byte("nobody's"))
	ok(t, err)
	missing := blob.ID([]byte("missing"))

	l := create(t, src, "s1")
	a := appender{s: l.Session()}
	a.surface(outcrop.UserMessage{Message: message.Message{ID: "u", Source: message.FromUser, Content: []message.Block{
		message.Text(`no image: {"attachmentId":"` + blob.ID([]byte("nobody's")) + `"}`), image(shown), image(shown), image(missing), image("odd")}}}, outcrop.Tail, outcrop.NoSources)
	r := outcrop.NewToolResult(1, 1, "c", false, image(inResult))
	r.Message.ID = "r"
	a.surface(r, outcrop.Tail, outcrop.NoSources)
	ok(t, a.err)
	ok(t, l.Close(bg))

	dst := memory.New()
	ok(t, store.Copy(bg, dst, src, "s1"))
	same(t, "the copy", stored(t, dst, "s1"), l.Session())
	for id, want := range map[string]string{shown: "shown", inResult: "in a result"} {
		got, err := dst.Objects().Get(bg, id)
		if err != nil || string(got) != want {
			t.Errorf("%s was copied as %q, %v", want, got, err)
		}
	}
	for _, id := range []string{missing, blob.ID([]byte("nobody's"))} {
		_, err := dst.Objects().Get(bg, id)
		wantErr(t, err, outcrop.ErrNotFound)
	}

	// And the other way, from memory.
	from := memory.New()
	more, err := from.Objects().Put(bg, []byte("from memory"))
	ok(t, err)
	l = create(t, from, "s2")
	a = appender{s: l.Session()}
	a.surface(outcrop.UserMessage{Message: message.Message{ID: "u", Source: message.FromUser, Content: []message.Block{image(more)}}}, outcrop.Tail, outcrop.NoSources)
	ok(t, a.err)
	ok(t, l.Close(bg))
	ok(t, store.Copy(bg, p.Open(), from, "s2"))
	got, err := objectsOf(t, p.Open()).Get(bg, more)
	if err != nil || string(got) != "from memory" {
		t.Errorf("copied as %q, %v", got, err)
	}
	// An object that cannot be stored ends the copy, and nothing is left of it.
	wantErr(t, store.Copy(bg, brokenObjects{memory.New()}, from, "s2"), errFull)
	// A store without attachments takes the log all the same.
	bare := struct{ store.Store }{memory.New()}
	ok(t, store.Copy(bg, bare, from, "s2"))
	same(t, "the copy", stored(t, bare, "s2"), l.Session())
}

// brokenObjects is a store that takes no attachments.
type brokenObjects struct{ *memory.Store }

func (s brokenObjects) Objects() store.Objects { return failingObjects{s.Store.Objects()} }

type failingObjects struct{ store.Objects }

func (failingObjects) Put(context.Context, []byte) (string, error) { return "", errFull }
