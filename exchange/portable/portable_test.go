package portable_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/portable"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/memory"
)

// key looks like one, and is none.
const key = "sk-proj-Zq8vT3mN7xK2pL9wR4yB6cD1fG5hJ0sA" + "QeUiOoPa"

// family puts a session, a fork of it and a session without relatives into a
// store. The first one names an attachment that is there and one that is not.
func family(t testing.TB, st store.Store, secret string) (id string, object string) {
	t.Helper()
	ctx := context.Background()
	objects := store.ObjectsOf(st)
	object, err := objects.Put(ctx, []byte("\x89PNG\r\n\x1a\nnot much of one"))
	if err != nil {
		t.Fatal(err)
	}
	put := func(h outcrop.Header, text string) {
		s, err := outcrop.New(h, outcrop.Options{Now: func() int64 { return 1_800_000_000_000 }, NewID: func() string { return "m1" }})
		if err != nil {
			t.Fatal(err)
		}
		s.Append(outcrop.TurnStart{Turn: 1})
		if _, err := s.AppendSurface(outcrop.UserMessage{Message: message.Message{Role: message.User, Source: message.FromUser, Content: []message.Block{
			message.Text(text),
			{Type: message.ImageBlock, Attachment: []byte(`{"attachmentId":"` + object + `","mediaType":"image/png"}`)},
			{Type: message.ImageBlock, Attachment: []byte(`{"attachmentId":"sha256:` + strings.Repeat("0", 64) + `","mediaType":"image/png"}`)},
		}}}, outcrop.Tail, outcrop.NoSources); err != nil {
			t.Fatal(err)
		}
		s.Append(outcrop.TurnEnd{Turn: 1, Reason: outcrop.TurnReason{Kind: outcrop.Completed}})
		if err := st.Put(ctx, h, func(yield func(outcrop.Record, error) bool) {
			for r := range s.Log().Records(0) {
				if !yield(r, nil) {
					return
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	root := outcrop.NewHeader("root", 1_800_000_000_000, "/home/dev/x")
	put(root, "first "+secret)
	child := root.Child("child", 1_800_000_000_001, 0)
	child.SeedLength = nil
	put(child, "second "+strings.TrimPrefix(secret, key))
	grandchild := child.Child("grandchild", 1_800_000_000_002, 0)
	grandchild.SeedLength = nil
	put(grandchild, "third")
	put(outcrop.NewHeader("alone", 1_800_000_000_003, "/home/dev/x"), "other")
	return "root", object
}

func pack(t testing.TB, st store.Store, ids []string, o portable.Options) ([]byte, portable.Report) {
	t.Helper()
	var out bytes.Buffer
	rep, err := portable.Write(context.Background(), &out, st, ids, o)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), rep
}

// take imports a package into a store.
func take(t testing.TB, dst store.Store, b []byte) *exchange.Report {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.zip")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	im := exchange.Importer{Store: dst}
	r, err := im.Import(context.Background(), portable.Format().Open(path))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func folder(t testing.TB, plain bool) *jsonl.Store {
	t.Helper()
	st, err := jsonl.New(filepath.Join(t.TempDir(), "sessions"), jsonl.Options{Plain: plain})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// bytesOf is the file of a session.
func bytesOf(t testing.TB, st store.Store, id string) []byte {
	t.Helper()
	sd, err := st.Read(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer sd.Close()
	b, err := os.ReadFile(sd.Path())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAFamilyComesBackToTheByte(t *testing.T) {
	for _, plain := range []bool{true, false} {
		src, dst := folder(t, plain), folder(t, plain)
		id, object := family(t, src, "")
		ids, err := portable.Tree(t.Context(), src, id)
		if err != nil || fmt.Sprint(ids) != "[root child grandchild]" {
			t.Fatalf("%v, %v", ids, err)
		}
		b, rep := pack(t, src, ids, portable.Options{})
		if rep.Masked != 0 || rep.Attachments != 1 || len(rep.Missing) != 1 || len(rep.Sessions) != 3 {
			t.Errorf("%+v", rep)
		}
		if again, _ := pack(t, src, ids, portable.Options{Raw: true}); !bytes.Equal(b, again) {
			t.Error("the same sessions give other bytes")
		}
		if r := take(t, dst, b); r.Err != nil || len(r.Sessions) != 3 {
			t.Fatalf("%v, %+v", r.Err, r.Sessions)
		}
		for _, id := range ids {
			if !bytes.Equal(bytesOf(t, src, id), bytesOf(t, dst, id)) {
				t.Errorf("plain %v: %s has other bytes", plain, id)
			}
		}
		if _, err := dst.Objects().Get(t.Context(), object); err != nil {
			t.Error(err)
		}
		if back, _ := pack(t, dst, ids, portable.Options{}); !bytes.Equal(b, back) {
			t.Error("the package of what came back has other bytes")
		}
		// The same again is there already.
		for _, o := range take(t, dst, b).Sessions {
			if o.Verdict != exchange.Present {
				t.Errorf("%s: %v", o.ID, o.Verdict)
			}
		}
	}
}

// TestFramesComeBackAsTheyWere takes a log of many frames, as a live session
// leaves it.
func TestFramesComeBackAsTheyWere(t *testing.T) {
	for _, plain := range []bool{true, false} {
		src, dst := folder(t, plain), folder(t, plain)
		l, err := store.Create(t.Context(), src, outcrop.NewHeader("s1", 1_800_000_000_000, "/home/dev"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for turn := range 20 {
			l.Session().Append(outcrop.TurnStart{Turn: turn + 1})
			if err := l.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.Session().Append(outcrop.TurnEnd{Turn: turn + 1, Reason: outcrop.TurnReason{Kind: outcrop.Completed}})
		}
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		b, _ := pack(t, src, []string{"s1"}, portable.Options{})
		if r := take(t, dst, b); r.Err != nil {
			t.Fatal(r.Err)
		}
		if !bytes.Equal(bytesOf(t, src, "s1"), bytesOf(t, dst, "s1")) {
			t.Errorf("plain %v: other bytes", plain)
		}
	}
}

func TestAnIDThatIsTakenGivesACopyWithItsChildren(t *testing.T) {
	src, dst := memory.New(), memory.New()
	id, _ := family(t, src, "")
	family(t, dst, "other")
	ids, _ := portable.Tree(t.Context(), src, id)
	b, _ := pack(t, src, ids, portable.Options{})
	r := take(t, dst, b)
	if r.Err != nil || len(r.Sessions) != 3 || r.Sessions[0].Verdict != exchange.Copied || r.Sessions[0].ID == "root" {
		t.Fatalf("%v, %+v", r.Err, r.Sessions)
	}
	sd, err := dst.Read(t.Context(), r.Sessions[1].ID)
	if err != nil {
		t.Fatal(err)
	}
	defer sd.Close()
	if p := sd.Header().ParentSession; p == nil || *p != r.Sessions[0].ID {
		t.Errorf("the child names %v", *p)
	}
}

func TestBetweenStoresTheEventsAreTheSame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64Range(1, 1000).Draw(rt, "seed")
		n := rapid.IntRange(0, 200).Draw(rt, "events")
		// Files are synced, which takes its time: most of the stores are in memory.
		some := func(name string) store.Store {
			switch n := rapid.IntRange(0, 9).Draw(rt, name); n {
			case 8, 9:
				return folder(t, n == 8)
			}
			return memory.New()
		}
		src, dst := some("from"), some("to")
		h := genlog.Header(seed)
		if err := src.Put(context.Background(), h, func(yield func(outcrop.Record, error) bool) {
			for r := range genlog.Records(seed, n) {
				if !yield(r, nil) {
					return
				}
			}
		}); err != nil {
			rt.Fatal(err)
		}
		b, rep := pack(t, src, []string{h.ID}, portable.Options{})
		if r := take(t, dst, b); r.Err != nil || r.Sessions[0].Verdict != exchange.Imported {
			rt.Fatalf("%v, %+v", r.Err, r.Sessions)
		}
		_, back := pack(t, dst, []string{h.ID}, portable.Options{})
		if rep.Sessions[0].Digest != back.Sessions[0].Digest || rep.Sessions[0].Events != back.Sessions[0].Events {
			rt.Fatalf("%+v, then %+v", rep.Sessions[0], back.Sessions[0])
		}
	})
}

func TestAMaskedPackageIsNeverTakenForTheOriginal(t *testing.T) {
	src := folder(t, false)
	id, _ := family(t, src, key)
	ids, _ := portable.Tree(t.Context(), src, id)
	b, rep := pack(t, src, ids, portable.Options{})
	if rep.Masked != 1 || rep.Sessions[0].ID != "root-masked" || rep.Sessions[0].MaskedFrom != "root" || rep.Sessions[1].Parent != "root-masked" {
		t.Errorf("%+v", rep)
	}
	dst := folder(t, false)
	if r := take(t, dst, b); r.Err != nil {
		t.Fatal(r.Err)
	}
	sd, err := dst.Read(t.Context(), "root-masked")
	if err != nil {
		t.Fatal(err)
	}
	defer sd.Close()
	if !bytes.Contains(sd.Header().Line(), []byte(`"maskedFrom":"root"`)) {
		t.Errorf("the header does not say it: %s", sd.Header().Line())
	}
	for r, err := range sd.Records() {
		if err != nil || r.Run == nil && bytes.Contains(r.Data, []byte(key)) {
			t.Fatalf("%v, %s", err, r.Data)
		}
	}
	if _, err := dst.Read(t.Context(), "root"); !errors.Is(err, outcrop.ErrNotFound) {
		t.Error("there is a session under the id of the original")
	}
	raw, rep := pack(t, src, ids, portable.Options{Raw: true})
	if rep.Masked != 0 {
		t.Error("a raw package is masked")
	}
	if r := take(t, dst, raw); r.Err != nil || !bytes.Equal(bytesOf(t, src, "root"), bytesOf(t, dst, "root")) {
		t.Errorf("%v", r.Err)
	}
}

// rezip writes a package again, each member through change; nil leaves it out.
func rezip(t testing.TB, b []byte, change func(name string, content []byte) (string, []byte), more ...string) []byte {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	add := func(name string, content []byte) {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err == nil {
			_, err = f.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range r.File {
		m, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(m)
		if err != nil {
			t.Fatal(err)
		}
		if name, content := change(f.Name, content); content != nil {
			add(name, content)
		}
	}
	for _, name := range more {
		add(name, []byte("x"))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestAPackageIsWholeOrRefused(t *testing.T) {
	src := folder(t, true)
	id, _ := family(t, src, "")
	good, _ := pack(t, src, []string{id}, portable.Options{})
	same := func(name string, b []byte) (string, []byte) { return name, b }
	with := func(old, new string) []byte {
		return rezip(t, good, func(name string, b []byte) (string, []byte) {
			if name == "manifest.json" {
				b = bytes.Replace(b, []byte(old), []byte(new), 1)
			}
			return name, b
		})
	}
	in := func(member string, change func([]byte) []byte) []byte {
		return rezip(t, good, func(name string, b []byte) (string, []byte) {
			if strings.HasPrefix(name, member) {
				return name, change(b)
			}
			return name, b
		})
	}
	for _, c := range []struct {
		name string
		b    []byte
		want string
	}{
		{"no zip", []byte("hello"), "no zip file"},
		{"cut", good[:len(good)/2], "no zip file"},
		{"no manifest", in("manifest", func([]byte) []byte { return nil }), "no manifest.json"},
		{"a log is missing", in("sessions/", func([]byte) []byte { return nil }), "sessions/1/session.jsonl is in the manifest"},
		{"an attachment is missing", in("attachments/", func([]byte) []byte { return nil }), "is in the manifest and not in the file"},
		{"other bytes of a log", in("sessions/", func(b []byte) []byte { return bytes.Replace(b, []byte("first"), []byte("fourt"), 1) }), "sessions/1/session.jsonl has another digest"},
		{"other bytes of an attachment", in("attachments/", func(b []byte) []byte { b[len(b)-1]++; return b }), "other bytes than its name says"},
		{"a size that is none", in("sessions/", func(b []byte) []byte { return append(b, '\n') }), "bytes, and the manifest says"},
		{"a name that leads out", rezip(t, good, same, "../../etc/passwd"), `"../../etc/passwd"`},
		{"an absolute name", rezip(t, good, same, "/etc/passwd"), `"/etc/passwd"`},
		{"a member that is not named", rezip(t, good, same, "run.sh"), `"run.sh"`},
		{"the same member twice", rezip(t, good, same, "manifest.json"), "two members"},
		{"a path that leads out", with("sessions/1/session.jsonl", "sessions/../../x"), "which must be"},
		{"another version", with(`"version": 1`, `"version": 2`), "version 2"},
		{"another format", with("outcrop-portable", "other"), "another format"},
		{"another id", with(`"id": "root"`, `"id": "toor"`), "and the manifest says"},
		{"another number of events", with(`"events": 3`, `"events": 4`), "other events"},
		{"a bomb", rezip(t, good, func(name string, b []byte) (string, []byte) {
			if strings.HasPrefix(name, "sessions/") {
				b = make([]byte, 120<<20)
			}
			return name, b
		}), "unpack to more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dst := folder(t, true)
			r := take(t, dst, c.b)
			if r.Err == nil || !strings.Contains(r.Err.Error(), c.want) {
				t.Errorf("%v", r.Err)
			}
			if infos, _ := dst.List(t.Context(), store.ListOptions{}); len(infos) != 0 {
				t.Errorf("%d sessions were stored", len(infos))
			}
			if entries, _ := os.ReadDir(filepath.Dir(dst.Root())); len(entries) != 0 {
				t.Errorf("there is something in the store: %v", entries)
			}
		})
	}
}

// growing is a store whose session gets one more event after its first reading.
type growing struct {
	*memory.Store
	reads int
	text  string
}

func (g *growing) Read(ctx context.Context, id string) (store.Stored, error) {
	if g.reads++; g.reads == 2 {
		l, err := g.Acquire(ctx, id)
		if err != nil {
			return nil, err
		}
		n := outcrop.Seq(0)
		for r := range l.Records() {
			n = r.Last() + 1
		}
		data := `{"content":[{"type":"text","text":"` + g.text + `"}],"source":{"kind":"user"},"role":"user","id":"late"}`
		if err := l.Append(ctx, func(yield func(outcrop.Record) bool) {
			yield(outcrop.Record{Event: outcrop.Event{Type: outcrop.TypeUserMessage, Seq: n, Time: 1, Data: []byte(data), Op: outcrop.Tail}})
		}); err != nil {
			return nil, err
		}
		l.Close()
	}
	return g.Store.Read(ctx, id)
}

// TestWhatComesMeanwhileIsNotPackedUnseen: an event that was stored after the
// search for secrets is left out, whatever it holds.
func TestWhatComesMeanwhileIsNotPackedUnseen(t *testing.T) {
	st := &growing{Store: memory.New(), text: "the key is " + key}
	id, _ := family(t, st.Store, "")
	b, rep := pack(t, st, []string{id}, portable.Options{})
	if rep.Masked != 0 || rep.Sessions[0].Events != 3 {
		t.Errorf("%+v", rep)
	}
	p, err := portable.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if _, rep := pack(t, st, []string{id}, portable.Options{}); rep.Masked != 1 {
		t.Errorf("later: %+v", rep)
	}
}

func TestADamagedLogIsNotPacked(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "internal", "cli", "testdata", "sample.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	b[1000] = 1
	path := filepath.Join(t.TempDir(), "x.jsonl")
	os.WriteFile(path, b, 0o600)
	st, err := jsonl.File(path, jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range []bool{true, false} {
		if _, err := portable.Write(t.Context(), io.Discard, st, []string{""}, portable.Options{Raw: raw}); !errors.Is(err, outcrop.ErrDamaged) {
			t.Errorf("%v", err)
		}
	}
	torn := b[:0:0]
	b[1000] = 'x'
	good, _ := os.ReadFile(filepath.Join("..", "..", "internal", "cli", "testdata", "sample.jsonl"))
	torn = append(torn, good...)
	torn = append(torn, `{"type":"tur`...)
	os.WriteFile(path, torn, 0o600)
	out, rep := pack(t, st, []string{""}, portable.Options{})
	if rep.Sessions[0].Bytes != int64(len(good)) {
		t.Errorf("%d bytes of the log are packed, %d are good", rep.Sessions[0].Bytes, len(good))
	}
	if r := take(t, memory.New(), out); r.Err != nil {
		t.Error(r.Err)
	}
}

// FuzzImport gives any file to the importer: it is refused, or what is stored
// is what the manifest says.
func FuzzImport(f *testing.F) {
	src := memory.New()
	id, _ := family(f, src, "")
	for _, ids := range [][]string{{id}, {id, "child"}, {}} {
		b, _ := pack(f, src, ids, portable.Options{})
		f.Add(b)
		f.Add(rezip(f, b, func(name string, b []byte) (string, []byte) { return name, b }))
	}
	f.Add([]byte("PK\x03\x04"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := portable.Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		if err := p.Verify(t.Context()); err != nil {
			return
		}
		for _, s := range p.Sessions() {
			h, recs, err := p.Log(t.Context(), s.ID)
			if err != nil {
				t.Fatal(err)
			}
			st := memory.New()
			if err := st.Put(t.Context(), h, recs); err != nil {
				t.Fatalf("what was verified is refused: %v", err)
			}
			if _, rep := pack(t, st, []string{h.ID}, portable.Options{Raw: true}); rep.Sessions[0].Digest != s.Digest {
				t.Fatalf("%s became %s", s.Digest, rep.Sessions[0].Digest)
			}
		}
	})
}

// FuzzManifest gives any manifest and any log to the reader.
func FuzzManifest(f *testing.F) {
	src := folder(f, true)
	id, _ := family(f, src, "")
	good, _ := pack(f, src, []string{id}, portable.Options{})
	var manifest, log []byte
	rezip(f, good, func(name string, b []byte) (string, []byte) {
		switch {
		case name == "manifest.json":
			manifest = b
		case strings.HasPrefix(name, "sessions/"):
			log = b
		}
		return name, b
	})
	f.Add(manifest, log)
	f.Add([]byte(`{"format":"outcrop-portable","version":1,"sessions":[],"attachments":[]}`), []byte(nil))
	f.Fuzz(func(t *testing.T, manifest, log []byte) {
		b := rezip(t, good, func(name string, b []byte) (string, []byte) {
			switch {
			case name == "manifest.json":
				return name, manifest
			case strings.HasPrefix(name, "sessions/"):
				return name, log
			}
			return name, b
		})
		if p, err := portable.Open(bytes.NewReader(b), int64(len(b))); err == nil {
			p.Verify(t.Context())
		}
	})
}

// ExampleWrite packs a session with all that come from it, and takes the
// package into another store.
func ExampleWrite() {
	ctx := context.Background()
	src, dst := memory.New(), memory.New()
	s, _ := outcrop.New(outcrop.NewHeader("s1", 1_800_000_000_000, ""), outcrop.Options{Now: func() int64 { return 1_800_000_000_000 }})
	s.Append(outcrop.TurnStart{Turn: 1})
	src.Put(ctx, s.Header(), func(yield func(outcrop.Record, error) bool) {
		for r := range s.Log().Records(0) {
			yield(r, nil)
		}
	})

	var file bytes.Buffer
	ids, _ := portable.Tree(ctx, src, "s1")
	portable.Write(ctx, &file, src, ids, portable.Options{})

	p, _ := portable.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err := p.Verify(ctx); err != nil {
		fmt.Println(err)
	}
	for _, s := range p.Sessions() {
		h, recs, _ := p.Log(ctx, s.ID)
		fmt.Println(s.ID, s.Events, dst.Put(ctx, h, recs))
	}
	// Output: s1 1 <nil>
}
