package viewer_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

// reads are all paths of one session that only read.
func reads(last int) []string {
	paths := []string{"", "/conversation?from=0&limit=200", "/conversation?from=0&limit=200&all=1", "/conversation?around=3", "/events?limit=1000&raw=1",
		"/events?row=-3&limit=2", "/events?seqs=0,1,99999", "/strata", "/strata?at=-1", "/strata?widths=equal&px=64&compare=3", "/strata/table", "/band?px=64", "/surface", "/surface?at=0",
		"/surface?diff=0..9999", "/requests?from=0", "/numbers", "/find?q=e", "/find?q=%C3%A4%20%22"}
	for _, seq := range []int{0, last / 2, last} {
		paths = append(paths, fmt.Sprintf("/events/%d", seq), fmt.Sprintf("/band/at?seq=%d", seq))
	}
	return paths
}

// corpusWorld is a viewer over the corpus of real logs.
func corpusWorld(t *testing.T) (w *world, ids []string) {
	t.Helper()
	w = newWorld(t, options{})
	folders, err := os.ReadDir(filepath.Join(conformance.Dir(), "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		for _, name := range []string{"session.jsonl", "session.jsonl.zstd"} {
			matches, err := filepath.Glob(filepath.Join(conformance.Dir(), "corpus", f.Name(), "sessions", "*", "*", name))
			if err != nil {
				t.Fatal(err)
			}
			more, err := filepath.Glob(filepath.Join(conformance.Dir(), "corpus", f.Name(), name))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range append(matches, more...) {
				from, err := jsonl.File(path, jsonl.Options{})
				if err != nil {
					t.Fatal(err)
				}
				s, _, err := store.Inspect(t.Context(), from, "", outcrop.Options{})
				if s == nil {
					t.Logf("%s: %v", path, err)
					continue
				}
				id := fmt.Sprintf("%s-%d", f.Name(), len(ids))
				h := s.Header()
				err = w.store.Put(t.Context(), h.Child(id, h.CreatedAt, int64(s.Len())), func(yield func(outcrop.Record, error) bool) {
					for r := range s.Log().Records(0) {
						if !yield(r, nil) {
							return
						}
					}
				})
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				ids = append(ids, id)
			}
		}
	}
	if len(ids) < 20 {
		t.Fatalf("%d sessions of the corpus", len(ids))
	}
	return w, ids
}

func TestEveryAnswerAboutTheCorpusIsRight(t *testing.T) {
	w, ids := corpusWorld(t)
	for _, id := range ids {
		s, _, err := store.Inspect(t.Context(), w.store, id, outcrop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		base := "/api/v1/sessions/" + id
		for _, path := range reads(s.Len() - 1) {
			w.get(base+path, nil)
		}
		var about struct {
			Events, LastSeq, Nodes, Generation, Items, Rows int
			Reason                                          *string
		}
		w.get(base, &about)
		if about.Events != s.Len() || about.LastSeq != s.Len()-1 || about.Nodes != s.Surface().Len() || about.Generation != s.Surface().Generation() || about.Reason != nil {
			t.Errorf("%s: %+v", id, about)
		}
		var surface struct{ Nodes []struct{ Seq outcrop.Seq } }
		w.get(base+"/surface?limit=2000", &surface)
		var nodes []outcrop.Seq
		for _, n := range surface.Nodes {
			nodes = append(nodes, n.Seq)
		}
		if !slices.Equal(nodes, s.Surface().Nodes()) {
			t.Errorf("%s: surface %v, not %v", id, nodes, s.Surface().Nodes())
		}
		checkRequests(t, w, base, s)
		checkRows(t, w, base, s.Len(), about.Rows)
	}
}

// checkRequests rebuilds the digest of each request as a browser does.
func checkRequests(t *testing.T, w *world, base string, s *outcrop.Session) {
	t.Helper()
	var list struct{ Requests []struct{ ID string } }
	w.get(base+"/requests?from=0&limit=500", &list)
	for _, r := range list.Requests {
		var got struct {
			Header   string
			Exact    bool
			Messages []struct {
				Raw, Hash string
				Exact     bool
			}
			Digest, H0 string
			Match      *bool
		}
		status, b := w.do(w.request("GET", base+"/requests/"+r.ID+"?raw=1&limit=2000&secrets=show", nil))
		if status == 422 {
			continue // no request header was logged before it
		}
		w.into(base, status, 200, b, &got)
		sum := sha256.Sum256([]byte(got.Header))
		if got.H0 != hex.EncodeToString(sum[:]) || !got.Exact {
			t.Fatalf("%s %s: header", base, r.ID)
		}
		for i, m := range got.Messages {
			sum = sha256.Sum256(append(sum[:], m.Raw...))
			if m.Hash != hex.EncodeToString(sum[:]) || !m.Exact {
				t.Fatalf("%s %s: message %d", base, r.ID, i)
			}
		}
		if got.Digest != "v1:"+hex.EncodeToString(sum[:]) || got.Match != nil && !*got.Match {
			t.Errorf("%s %s: %+v", base, r.ID, got.Digest)
		}
	}
}

// checkRows pages through the list of events: each event is there once.
func checkRows(t *testing.T, w *world, base string, events, rows int) {
	t.Helper()
	type page struct {
		Row, Rows int
		Next      *int
		Events    []struct{ Row, Seq, Last, Count int }
	}
	at, n := 0, 0
	for {
		var p page
		w.get(fmt.Sprintf("%s/events?from=%d&limit=7", base, at), &p)
		for _, e := range p.Events {
			if e.Seq != at || e.Row != n || e.Count != e.Last-e.Seq+1 {
				t.Fatalf("%s: %+v at event %d, row %d", base, e, at, n)
			}
			at, n = e.Last+1, n+1
		}
		if p.Next == nil {
			break
		}
		if *p.Next != at {
			t.Fatalf("%s: next is %d, not %d", base, *p.Next, at)
		}
	}
	if at != events || n != rows {
		t.Errorf("%s: %d events in %d rows, not %d in %d", base, at, n, events, rows)
	}
}

func user(text string) outcrop.UserMessage {
	return outcrop.UserMessage{Message: message.Message{ID: "m", Role: message.User, Source: message.FromUser, Content: []message.Block{message.Text(text)}}}
}

// Log content that means to do harm is text in valid JSON, whatever is asked.
func TestHostileLogsAreAnsweredAsValidJSON(t *testing.T) {
	w := newWorld(t, options{})
	hostile := []string{
		`<script>alert(1)</script><img src=x onerror=alert(1)>`, "\x1b[2J\x1b[?1003h\x1b]0;x\x07", "\u202eevil\u2066\u200b", "a\x00b\rc\bd\u0085\u2028",
		"\xff\xfe broken \xc3\x28 \xed\xa0\x80", "\ufeff", `","x":"`, "]]>", "data: x\n\nevent: reset\n", strings.Repeat("a", 5<<20), strings.Repeat("\xff", 30_000), strings.Repeat("𝔘", 30_000),
	}
	deep := strings.Repeat(`{"a":[`, 4_900) + strings.Repeat(`]}`, 4_900)
	var lines []string
	seq := 0
	line := func(typ, data, rest string) {
		lines = append(lines, fmt.Sprintf(`{"type":%s,"seq":%d,"time":1760000000000,"data":%s%s}`, typ, seq, data, rest))
		seq++
	}
	quoted := func(s string) string {
		// As bytes: what is no UTF-8 stays so.
		b := []byte{'"'}
		for i := range len(s) {
			switch c := s[i]; {
			case c == '"' || c == '\\':
				b = append(b, '\\', c)
			case c < 0x20:
				b = append(b, fmt.Sprintf(`\u%04x`, c)...)
			default:
				b = append(b, c)
			}
		}
		return string(append(b, '"'))
	}
	for i, h := range hostile {
		q, long := quoted(h), quoted(h)
		if len(h) > 1<<20 {
			q = quoted(h[:100]) // once is enough
		}
		line(`"turn/start"`, fmt.Sprintf(`{"turn":%d}`, i+1), "")
		line(`"step/start"`, fmt.Sprintf(`{"turn":%d,"step":1}`, i+1), "")
		line(`"request/header"`, `{"reason":`+q+`,"header":{"config":{"provider":`+q+`,"model":`+q+`},"system":`+q+`,"tools":[{"name":`+q+`,"description":`+q+`}]}}`, "")
		line(`"user/message"`, `{"content":[{"type":"text","text":`+long+`},{"type":`+q+`,"x":`+deep+`},{"type":"image","attachment":{"attachmentId":`+q+`,"name":`+q+`,"mediaType":`+q+`}}],"source":{"kind":"user","summary":`+q+`},"role":"user","id":`+q+`}`, `,"surfaceOp":"append"`)
		line(`"outcrop/request"`, fmt.Sprintf(`{"turn":%d,"step":1,"attempt":1,"purpose":"turn","prefix":%d,"digest":%s,"encoder":%s}`, i+1, seq-1, q, q), `,"ignorable":true`)
		line(`"assistant/chunk"`, fmt.Sprintf(`{"turn":%d,"step":1,"chunk":{"type":"text-delta","index":0,"text":%s}}`, i+1, q), "")
		line(`"assistant/message"`, fmt.Sprintf(`{"turn":%d,"step":1,"message":{"role":"assistant","content":[{"type":"reasoning","text":%s},{"type":"tool-call","id":%s,"name":%s,"arguments":%s}],"source":{"kind":"model","provider":%s,"model":%s},"id":%s},"usage":{"inputTokens":9007199254740993,"outputTokens":-5}}`, i+1, q, q, q, q, q, q, q), `,"surfaceOp":"append"`)
		line(`"tool/call"`, fmt.Sprintf(`{"turn":%d,"step":1,"callId":%s,"name":%s,"arguments":%s}`, i+1, q, q, q), "")
		line(`"tool/result"`, fmt.Sprintf(`{"turn":%d,"step":1,"message":{"content":[{"type":"tool-result","toolCallId":%s,"isError":true,"content":[{"type":"text","text":%s}]}],"source":{"kind":"tool","callId":%s},"role":"user","id":%s},"error":{"name":%s,"code":%s}}`, i+1, q, q, q, q, q, q), fmt.Sprintf(`,"surfaceOp":"append","sourceEventSeqs":[%d]`, seq-1))
		line(`"session/title"`, `{"title":`+q+`,"source":"user"}`, "")
		line(`"outcrop/tag"`, `{"tag":`+q+`,"set":true}`, `,"ignorable":true`)
		line(quoted("x/"+strings.ToValidUTF8(h[:min(len(h), 20)], "")), `{"deep":`+deep+`,"text":`+q+`}`, `,"ignorable":true`)
		line(`"step/end"`, fmt.Sprintf(`{"turn":%d,"step":1}`, i+1), "")
		line(`"turn/end"`, fmt.Sprintf(`{"turn":%d,"reason":{"kind":"error","error":{"message":%s,"code":%s}}}`, i+1, q, q), "")
	}
	// Beside a session that a store made, a folder with these lines.
	w.put("model", outcrop.Event{Type: outcrop.TypeTurnStart, Seq: 0, Time: 1, Data: []byte(`{"turn":1}`)})
	made, err := filepath.Glob(filepath.Join(w.dir, "*", "session.jsonl"))
	if err != nil || len(made) == 0 {
		if made, err = filepath.Glob(filepath.Join(w.dir, "*", "*", "session.jsonl")); err != nil || len(made) == 0 {
			t.Fatalf("%v %v", made, err)
		}
	}
	folder := filepath.Join(filepath.Dir(filepath.Dir(made[0])), strings.ReplaceAll(filepath.Base(filepath.Dir(made[0])), "model", "evil"))
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	header := `{"type":"session","version":0,"id":"evil","createdAt":1760000000000,"cwd":"/w","delegationDepth":0,"outcrop":1}`
	if err := os.WriteFile(filepath.Join(folder, "session.jsonl"), []byte(header+"\n"+strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var about struct {
		Events int
		Reason *string
	}
	w.get("/api/v1/sessions/evil", &about)
	if about.Events != len(lines) || about.Reason != nil {
		t.Fatalf("%d of %d events were read: %v", about.Events, len(lines), about.Reason)
	}
	paths := []string{"/api/v1/sessions", "/api/v1/sessions/tree?root=evil"}
	for _, secrets := range []string{"", "secrets=show"} {
		for _, path := range append(reads(len(lines)-1), "/requests/next?raw=1", "/requests/3.1.1?raw=1", "/requests/6.1.1") {
			sep := "?"
			if strings.Contains(path, "?") {
				sep = "&"
			}
			paths = append(paths, "/api/v1/sessions/evil"+path+sep+secrets)
		}
		for seq := range lines {
			paths = append(paths, fmt.Sprintf("/api/v1/sessions/evil/events/%d?%s", seq, secrets))
		}
	}
	for _, path := range paths {
		status, h, b := w.whole(w.request("GET", path, nil))
		if status != 200 || h.Get("Content-Type") != "application/json" || jsonwire.Valid(b) != nil || !utf8.Valid(b) {
			t.Errorf("%s: %d %s %v %.300q", path, status, h.Get("Content-Type"), jsonwire.Valid(b), b)
		}
		if err := json.Unmarshal(b, new(any)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	status, h, b := w.whole(w.request("GET", "/api/v1/sessions/evil/events/3/raw", nil))
	if status != 200 || h.Get("Content-Type") != "text/plain; charset=utf-8" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment") || len(b) == 0 {
		t.Errorf("raw: %d %v", status, h)
	}
	// A newline in data must not end an event of the stream.
	s := w.listen("/api/v1/sessions/evil/live", "")
	defer s.close()
	if ev := s.next(); ev.name != "hello" {
		t.Errorf("%+v", ev)
	}
}

func TestSecretsAreMaskedUnlessAskedFor(t *testing.T) {
	const key = "sk-proj-Zk3vQ9xT7LmB2nR8wYcJ5hDf4GsA6uE1"
	w := newWorld(t, options{})
	l := w.live("s1")
	s := l.Session()
	for _, p := range []outcrop.LogPayload{outcrop.TurnStart{Turn: 1}, outcrop.StepStart{Turn: 1, Step: 1}, outcrop.RequestHeader{Reason: "initial", Header: []byte(`{"config":{"provider":"p","model":"m"},"system":"the key is ` + key + `","tools":[]}`)}} {
		if _, err := s.Append(p); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.AppendSurface(user("my key is "+key+", keep it"), outcrop.Tail, outcrop.NoSources); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(outcrop.SessionTitle{Title: "key " + key, Source: "user"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	paths := append(reads(s.Len()-1), "/requests/next?raw=1", "/events/3", "/conversation/3", "/find?q=key")
	paths = append(paths, "/find?q="+key[3:20])
	for _, path := range paths {
		status, b := w.do(w.request("GET", "/api/v1/sessions/s1"+path, nil))
		if status != 200 || strings.Contains(string(b), key) {
			t.Errorf("%s: %d %s", path, status, b)
		}
	}
	if _, b := w.do(w.request("GET", "/api/v1/sessions/s1/events/3/raw", nil)); strings.Contains(string(b), key) {
		t.Errorf("raw: %s", b)
	}
	st := w.listen("/api/v1/sessions/s1/live?after=s1.0.0.-1.0", "")
	for _, ev := range st.until(func(ev sse) bool { return strings.Contains(ev.data, "user/message") }) {
		if strings.Contains(ev.data, key) {
			t.Errorf("live: %+v", ev)
		}
	}
	st.close()
	var item struct {
		Masked int
		Item   struct{ Blocks []struct{ Text string } }
	}
	w.get("/api/v1/sessions/s1/conversation/3", &item)
	if item.Masked != 1 || item.Item.Blocks[0].Text != "my key is [masked:api-key], keep it" {
		t.Errorf("%+v", item)
	}
	w.get("/api/v1/sessions/s1/conversation/3?secrets=show", &item)
	if item.Masked != 0 || !strings.Contains(item.Item.Blocks[0].Text, key) {
		t.Errorf("%+v", item)
	}
	var ev struct {
		Raw   string
		Exact bool
	}
	w.get("/api/v1/sessions/s1/events/3", &ev)
	if ev.Exact {
		t.Errorf("masked and exact: %+v", ev)
	}
	w.get("/api/v1/sessions/s1/events/3?secrets=show", &ev)
	if !ev.Exact || ev.Raw != string(s.Log().At(3).AppendJSON(nil)) {
		t.Errorf("%+v", ev)
	}
}

func TestAttachmentsAreShownOnlyWhenTheirContentIsAPicture(t *testing.T) {
	w := newWorld(t, options{})
	objects := store.ObjectsOf(w.store)
	png, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		b      []byte
		kind   string
		inline bool
	}{
		{"a PNG", png, "image/png", true},
		{"a GIF", []byte("GIF89a......"), "image/gif", true},
		{"a JPEG", []byte("\xff\xd8\xff\xe0...."), "image/jpeg", true},
		{"a WebP", []byte("RIFF....WEBPVP8 "), "image/webp", true},
		{"an SVG", []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`), "application/octet-stream", false},
		{"a page", []byte(`<!doctype html><script>alert(1)</script>`), "application/octet-stream", false},
		{"text", []byte("plain"), "application/octet-stream", false},
		{"nothing", nil, "application/octet-stream", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			id, err := objects.Put(t.Context(), c.b)
			if err != nil {
				t.Fatal(err)
			}
			status, h, b := w.whole(w.request("GET", "/api/v1/attachments/"+id, nil))
			if status != 200 || string(b) != string(c.b) || h.Get("Content-Type") != c.kind || (h.Get("Content-Disposition") == "") != c.inline ||
				h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Security-Policy") != "default-src 'none'; sandbox" {
				t.Errorf("%d %v", status, h)
			}
		})
	}
	if code := w.refused("/api/v1/attachments/sha256:"+strings.Repeat("0", 64), 404); code != "ATTACHMENT_NOT_FOUND" {
		t.Error(code)
	}
	r := w.request("POST", "/api/v1/attachments", png)
	r.Header.Set("Content-Type", "image/png")
	var put struct{ ID string }
	status, b := w.do(r)
	w.into("put", status, 200, b, &put)
	if _, err := objects.Get(t.Context(), put.ID); err != nil {
		t.Error(err)
	}
	for kind, body := range map[string]string{"image/gif": string(png), "image/svg+xml": "<svg/>", "text/html": "<b>", "image/png": "\x89PNG\r\n\x1a\nno"} {
		r := w.request("POST", "/api/v1/attachments", []byte(body))
		r.Header.Set("Content-Type", kind)
		if status, b := w.do(r); status != 400 && status != 409 {
			t.Errorf("%s: %d %s", kind, status, b)
		}
	}
}

func TestTheListOfSessionsIsFilteredPagedAndCompletedInTime(t *testing.T) {
	w := newWorld(t, options{})
	for i := range 7 {
		l := w.live(fmt.Sprintf("s%d", i))
		if err := storetest.Turn(l.Session(), 1); err != nil {
			t.Fatal(err)
		}
		if i == 3 {
			if _, err := l.Session().Append(outcrop.SessionTitle{Title: "The Special one", Source: "user"}); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Session().Append(outcrop.OutcropTag{Tag: "red", Set: true}); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.ForkAt(t.Context(), w.store, "s1", -1, store.Child{ID: "child", CreatedAt: 2}); err != nil {
		t.Fatal(err)
	}
	type page struct {
		Total, Pending int
		Cursor         *string
		Sessions       []struct {
			ID     string
			Title  *string
			Parent *string
			Turns  *int
			Tags   []string
		}
	}
	var p page
	for {
		w.get("/api/v1/sessions?limit=500", &p)
		if p.Pending == 0 {
			break
		}
	}
	if p.Total != 8 || len(p.Sessions) != 8 || p.Cursor != nil {
		t.Fatalf("%+v", p)
	}
	for _, s := range p.Sessions {
		if s.Turns == nil || *s.Turns != 1 || s.Title == nil {
			t.Errorf("%+v", s)
		}
	}
	var seen []string
	cursor := ""
	for {
		var one page
		w.get("/api/v1/sessions?limit=3&cursor="+cursor, &one)
		for _, s := range one.Sessions {
			seen = append(seen, s.ID)
		}
		if one.Cursor == nil {
			break
		}
		cursor = *one.Cursor
	}
	var all []string
	for _, s := range p.Sessions {
		all = append(all, s.ID)
	}
	if d := cmp.Diff(all, seen); d != "" {
		t.Error(d)
	}
	for q, want := range map[string]string{"q=special": "s3", "q=ONE+special": "s3", "tag=red": "s3", "parent=s1": "child", "q=special+nothing": "", "state=damaged": "", "cwd=/elsewhere": ""} {
		var got page
		w.get("/api/v1/sessions?"+q, &got)
		ids := ""
		for _, s := range got.Sessions {
			ids += s.ID
		}
		if ids != want || got.Total != len(got.Sessions) {
			t.Errorf("%s: %q, not %q", q, ids, want)
		}
	}
	var tree page
	w.get("/api/v1/sessions/tree?root=child", &tree)
	if len(tree.Sessions) != 2 || tree.Sessions[0].ID != "s1" || tree.Sessions[1].ID != "child" || *tree.Sessions[1].Parent != "s1" {
		t.Errorf("%+v", tree)
	}
	if code := w.refused("/api/v1/sessions/nobody", 404); code != "SESSION_NOT_FOUND" {
		t.Error(code)
	}
	if code := w.refused("/api/v1/sessions?cursor=x", 400); code != "BAD_REQUEST" {
		t.Error(code)
	}
}

// Each path that the program has stands in the reference, and the reverse.
func TestTheReferenceNamesEachPath(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "http.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	code, err := os.ReadFile("routes.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`get\(one\+"([^"]+)"`).FindAllStringSubmatch(string(code), -1) {
		path := strings.NewReplacer("{seq}", "N", "{request}", "T.N.K").Replace(m[1])
		if !strings.Contains(text, "..."+path) && !strings.Contains(text, "/sessions/S"+path) && !strings.Contains(text, strings.ReplaceAll("..."+path, "/N", "/SEQ")) {
			t.Errorf("docs/http.md does not name %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`(?:get|post)\("(/api/[^"{]+)`).FindAllStringSubmatch(string(code), -1) {
		if !strings.Contains(text, m[1]) {
			t.Errorf("docs/http.md does not name %s", m[1])
		}
	}
	change, err := os.ReadFile("change.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`"([a-z]+)": v\.(?:changing|shelve)`).FindAllStringSubmatch(string(change), -1) {
		if !strings.Contains(text, "| `"+m[1]+"` |") {
			t.Errorf("docs/http.md does not name the change %s", m[1])
		}
	}
}
