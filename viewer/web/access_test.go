package web_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

func tokens(t *testing.T, b *browser) {
	dir, st := demo(t)
	s := serve(t, dir, st, nil)
	p := b.tab(t, 900, 700)
	p.open(s.url)
	p.has("This page needs its key")
	p.open(s.url + "#k=" + s.key)
	p.wait("document.querySelector('.session')")
	if hash := eval[string](p, "location.hash"); strings.Contains(hash, s.key) {
		t.Errorf("the key stays in the address: %s", hash)
	}
	p.open(s.page("demo", "talk"))
	p.wait(ready["talk"])
	if cookies := eval[string](p, "document.cookie"); cookies != "" {
		t.Errorf("scripts see the cookie %q", cookies)
	}
}

func emptyStore(t *testing.T, b *browser) {
	dir := t.TempDir()
	s := serve(t, dir, "jsonl:"+filepath.Join(dir, "nothing"), nil, "--no-token")
	p := b.tab(t, 900, 700)
	p.open(s.url)
	p.has("No sessions in jsonl:" + filepath.Join(dir, "nothing"))
	p.has("outcrop demo")
	p.wait("[...document.querySelectorAll('button')].some(b => b.textContent.trim() === 'Copy')")
}

func digests(t *testing.T, b *browser) {
	dir, st := demo(t)
	s := serve(t, dir, st, nil, "--no-token")
	p := b.tab(t, 1200, 800)
	p.open(s.page("demo", "requests"))
	p.wait(ready["requests"])
	requests := eval[int](p, "document.querySelector('oc-requests').total")
	if requests < 6 {
		t.Fatalf("%d requests", requests)
	}
	for i := range requests {
		p.wait("(r => r.facts?.request?.id === r.which)(document.querySelector('oc-requests'))")
		p.keys("x")
		p.wait("document.querySelector('code.checked')")
		same := eval[bool](p, `(codes => codes.length === 3 && new Set(codes).size === 1 && codes[0].startsWith('v1:'))([...document.querySelectorAll('.digest code')].map(c => c.innerText))`)
		if !same || !eval[bool](p, "document.querySelector('.digest').innerText.includes('same as recorded')") {
			t.Errorf("request %d from the end: %s", i, eval[string](p, "document.querySelector('.digest').innerText"))
		}
		if i == 0 {
			p.has("cache broke here")
		}
		if i+1 < requests {
			p.keys("k")
			p.wait("!document.querySelector('code.checked')")
		}
	}
}

func strataCursor(t *testing.T, b *browser) {
	dir, st := demo(t)
	s := serve(t, dir, st, nil, "--no-token")
	p := b.tab(t, 1200, 900)
	p.open(s.page("demo", "strata"))
	p.wait(ready["strata"])
	surface := func() string {
		t.Helper()
		return eval[string](p, "document.querySelector('oc-strata').source.scene.row(0).map(t => t.seq).join(' ')")
	}
	if got := surface(); got != "85 92 99" {
		t.Errorf("the surface at the end is %s", got)
	}
	// The tour goes through four stops and ends where it began.
	p.has("Top row: what the model sees now. Below: what each summary or edit covers. Nothing is deleted.")
	p.click("button:show me")
	for n := 1; n <= 4; n++ {
		p.wait(fmt.Sprintf("document.querySelector('.intro')?.innerText.includes('%d of 4')", n))
		if n < 4 {
			p.click("button:Next")
		}
	}
	p.click("button:Done")
	p.wait("!document.querySelector('.intro') && document.querySelector('.at').innerText.includes('101 of 101')")
	// The slider: both bands show the state after that event.
	eval[any](p, "(r => { r.value = 84; r.dispatchEvent(new Event('input', {bubbles: true})); })(document.querySelector('.cursor input'))")
	p.wait("document.querySelector('oc-strata').source.scene.row(0).length === 10")
	p.wait("location.hash.includes('at=84')")
	// Compare with the end.
	p.keys("c")
	eval[any](p, "(r => { r.value = 101; r.dispatchEvent(new Event('input', {bubbles: true})); })(document.querySelector('.cursor input'))")
	p.has("From 84 to 101: 3 added, 10 removed, 0 the same")
	p.keys("c")
	// A tile under the pointer: its card; a click: its event.
	box := eval[[]float64](p, "(r => [r.left, r.top])(document.querySelector('canvas.bands').getBoundingClientRect())")
	p.do(moveTo(box[0]+200, box[1]+33))
	p.wait("document.querySelector('.card')?.innerText.includes('covered by 85')")
	p.do(clickAt(box[0]+60, box[1]+10))
	p.wait("document.querySelector('.event h2')?.innerText === 'Event 85'")
	p.keys(kb.Escape)
	// Zoom and fit.
	p.keys("+", "+")
	p.wait("document.querySelector('oc-strata').win !== null && document.querySelector('oc-strata').source.answer.to - document.querySelector('oc-strata').source.answer.from < document.querySelector('oc-strata').source.answer.widthTotal * 0.9")
	p.keys("0")
	p.wait("document.querySelector('oc-strata').win === null")
	// As a table.
	p.keys("v")
	p.wait("document.querySelectorAll('.table-row .seq').length === 3")
}

const nasty = `<script>window.ran = 1</script><img src=x onerror='window.ran = 2'><svg onload='window.ran = 3'>[a](javascript:window.ran=4)![i](http://127.0.0.1:9/x.png)`

// hostile looks at a log that has a script in every field, terminal escapes,
// directions, 5 MB lines, 10,000 levels and bytes that are no UTF-8.
func hostile(t *testing.T, b *browser) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "--home-dev-x--", "hostile")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	q := func(s string) string {
		r := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\x1b", `\u001b`, "\u202e", `\u202e`, "\x00", `\u0000`)
		return `"` + r.Replace(s) + `"`
	}
	evil := nasty + "\x1b[2J\x1b]0;x\a\u202etxt.exe\x00" + "\n```js\n" + nasty + "\n```\n"
	evil = strings.ReplaceAll(evil, "\a", "")
	lines := []string{`{"type":"session","version":0,"id":"hostile","createdAt":1800000000000,"cwd":"/home/dev/x","delegationDepth":0,"outcrop":1}`}
	seq := 0
	add := func(typ, data, more string) {
		lines = append(lines, fmt.Sprintf(`{"type":%q,"seq":%d,"time":%d,"data":%s%s}`, typ, seq, 1800000000000+seq, data, more))
		seq++
	}
	add("turn/start", `{"turn":1}`, "")
	add("step/start", `{"turn":1,"step":1}`, "")
	add("request/header", `{"header":{"config":{"provider":"p","model":`+q(nasty)+`},"system":`+q(evil)+`,"tools":[{"name":"read","description":`+q(nasty)+`,"parameters":{"type":"object"}}]},"reason":"initial"}`, "")
	add("user/message", `{"content":[{"type":"text","text":`+q(evil)+`}],"source":{"kind":"user"},"role":"user","id":"p1"}`, `,"surfaceOp":"append"`)
	add("context/message", `{"content":[{"type":"text","text":`+q(evil)+`}],"source":{"kind":`+q(nasty)+`,"form":`+q(nasty)+`},"role":"user","id":"c1"}`, `,"surfaceOp":"append"`)
	deep := strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000)
	add("assistant/message", `{"turn":1,"step":1,"message":{"role":"assistant","content":[{"type":"reasoning","text":`+q(evil)+`},{"type":"text","text":`+q(evil)+`},{"type":"tool-call","id":"call_1","name":"read","arguments":`+q(`{"path":`+q(nasty)+`}`)+`},{"type":"tool-call","id":"call_2","name":"deep","arguments":`+q(`{"a":`+deep+`}`)+`}],"source":{"kind":"model","provider":"p","model":`+q(nasty)+`},"id":"a1"}}`, `,"sourceEventSeqs":[],"surfaceOp":"append"`)
	for _, id := range []string{"call_1", "call_2"} {
		add("tool/call", `{"turn":1,"step":1,"callId":"`+id+`","name":"read","arguments":"{}"}`, "")
	}
	add("tool/result", `{"turn":1,"step":1,"message":{"source":{"kind":"tool","callId":"call_1"},"content":[{"type":"tool-result","toolCallId":"call_1","content":[{"type":"text","text":`+q(strings.Repeat("x", 5<<20)+nasty)+`}]}],"role":"user","id":"r1"}}`, `,"sourceEventSeqs":[6],"surfaceOp":"append"`)
	add("tool/result", `{"turn":1,"step":1,"message":{"source":{"kind":"tool","callId":"call_2"},"content":[{"type":"tool-result","toolCallId":"call_2","content":[{"type":"text","text":"bad `+"\xff\xfe\xc3("+` utf-8 `+`"}]}],"role":"user","id":"r2"}}`, `,"sourceEventSeqs":[7],"surfaceOp":"append"`)
	add("step/end", `{"turn":1,"step":1}`, "")
	add("turn/end", `{"turn":1,"reason":{"kind":"completed"}}`, "")
	add("session/title", `{"title":`+q(nasty)+`}`, "")
	if err := os.WriteFile(filepath.Join(folder, "session.jsonl"), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, dir, "jsonl+plain:"+dir, nil, "--no-token")
	p := b.tab(t, 1200, 900)
	p.open(s.url)
	p.wait("document.querySelector('.session')")
	check := func(where string) {
		t.Helper()
		if ran := eval[any](p, "window.ran ?? null"); ran != nil {
			t.Fatalf("%s: a script ran: %v", where, ran)
		}
		if bad := eval[[]string](p, `[...document.querySelectorAll('script:not([src]), svg[onload], [onerror], iframe, object, embed, a[href^="javascript"]')].map(e => e.outerHTML.slice(0, 100))`); len(bad) > 0 {
			t.Errorf("%s: text became markup: %q", where, bad)
		}
		if eval[bool](p, `/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u202a-\u202e\u2066-\u2069]/.test(document.body.textContent)`) {
			t.Errorf("%s: control characters are in the page as they are", where)
		}
	}
	check("the list")
	for _, view := range viewNames {
		p.open(s.page("hostile", view))
		p.wait(ready[view])
		check(view)
	}
	p.open(s.page("hostile", "talk"))
	p.wait(ready["talk"])
	p.keys(kb.Home, "O")
	p.has("<script>window.ran = 1</script>")
	check("the conversation, unfolded")
	for n := range seq {
		p.open(s.page("hostile", "log") + fmt.Sprintf("?event=%d", n))
		p.wait("document.querySelector('.event .facts')")
		check(fmt.Sprintf("event %d", n))
		eval[any](p, "[...document.querySelectorAll('.event [role=tab]')].at(-1).click()")
		p.wait("document.querySelector('.event pre')")
		check(fmt.Sprintf("event %d, raw", n))
	}
}
