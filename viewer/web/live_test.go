package web_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/llm/llmtest"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/viewer"
)

// cutting is a listener whose connections can all be cut.
type cutting struct {
	net.Listener
	mu    sync.Mutex
	conns map[net.Conn]bool
}

func (l *cutting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		l.conns[c] = true
		l.mu.Unlock()
	}
	return c, err
}

func (l *cutting) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	clear(l.conns)
}

// pages serves a store without any command around it.
func pages(t *testing.T, st store.Store) (url string, l *cutting) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = &cutting{Listener: inner, conns: map[net.Conn]bool{}}
	v, err := viewer.New(viewer.Options{
		Store: st, Addr: inner.Addr().String(), Demo: "outcrop demo", Version: "test",
		Now: func() int64 { return time.Now().UnixMilli() }, NewID: rand.Text, Random: func(b []byte) { rand.Read(b) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- viewer.Serve(ctx, l, v) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + inner.Addr().String() + "/", l
}

func cutStream(t *testing.T, b *browser) {
	st, err := jsonl.New(t.TempDir(), jsonl.Options{Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	now := func() int64 { return time.Now().UnixMilli() }
	live, err := store.Create(t.Context(), st, outcrop.NewHeader("live", now(), "/home/dev"), store.Options{Session: outcrop.Options{Now: now, NewID: rand.Text}})
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close(context.Background())
	url, l := pages(t, st)
	p := b.tab(t, 1200, 800)
	append1 := func(n int) {
		t.Helper()
		raw := fmt.Sprintf(`{"content":[{"type":"text","text":"message number %d"}],"source":{"kind":"user"},"role":"user","id":"m%d"}`, n, n)
		if _, err := live.Session().AppendRaw(outcrop.Event{Type: "user/message", Data: json.RawMessage(raw), Op: outcrop.Tail}); err != nil {
			t.Fatal(err)
		}
		if err := live.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	append1(0)
	p.open(url + "#/s/live/log")
	p.wait(ready["log"])
	const events = 300
	for n := 1; n < events; n++ {
		append1(n)
		if n%40 == 0 {
			p.wait(fmt.Sprintf("document.querySelector('oc-log').total > %d", n-40))
			l.cut()
		}
	}
	p.wait(fmt.Sprintf("document.querySelector('oc-log').total === %d", events))
	// Every row once, in order, from end to end.
	got := eval[string](p, `(async () => {
		const el = document.querySelector('.scroll.log');
		const seen = new Map();
		for (let top = 0; top <= el.scrollHeight; top += 300) {
			el.scrollTop = top;
			for (let i = 0; i < 200; i++) {
				await new Promise(r => requestAnimationFrame(r));
				const rows = [...document.querySelectorAll('.log-row')];
				if (rows.length && rows.every(r => r.querySelector('.type'))) { rows.forEach(r => seen.set(+r.dataset.index, r.querySelector('.seq').innerText + r.querySelector('.what').innerText)); break; }
			}
		}
		for (let i = 0; i < 300; i++) if (!(seen.get(i) ?? '').startsWith(i + '') || !seen.get(i).endsWith('message number ' + i)) return i + ': ' + seen.get(i);
		return seen.size + ' rows';
	})()`)
	if got != "300 rows" {
		t.Errorf("the log shows %s", got)
	}
	// And so do conversation and strata, while more comes.
	p.keys("1")
	p.has("message number 299")
	append1(events)
	p.has("message number 300")
	p.keys("2")
	p.wait(ready["strata"])
	append1(events + 1)
	p.wait("document.querySelector('.at').innerText.includes('301 of 301')")
}

// cursorStep is what a step of the cursor costs in the strata view that is open:
// until the answer is there, and until both bands are drawn, each in ms. bare is
// the floor on the machine as it is: the shortest question to the same server.
func cursorStep(p *tab) (bare, asked, drawn, tiles float64) {
	p.t.Helper()
	got := eval[[]float64](p, `(async () => {
		const v = document.querySelector('oc-strata');
		const last = v.model.facts.lastSeq;
		const turn = new MessageChannel(); // a timer would wait longer than a step takes
		const yielded = () => new Promise(r => { turn.port1.onmessage = r; turn.port2.postMessage(0); });
		let bare = 0, asked = 0, drawn = 0;
		for (let i = 1; i <= 20; i++) {
			performance.mark('bare');
			await (await fetch('/api/v1')).json();
			bare += performance.measure('asked', 'bare').duration;
			const to = Math.floor(last * i / 21);
			performance.mark('step');
			v.moveTo(to);
			while (v.source.answer.at !== to) await yielded();
			asked += performance.measure('answered', 'step').duration;
			performance.mark('draw');
			v.paint();
			drawn += performance.measure('drawn', 'draw').duration;
		}
		return [bare / 20, asked / 20, drawn / 20, v.source.scene.tiles.length];
	})()`)
	return got[0], got[1], got[2], got[3]
}

func longScroll(t *testing.T, b *browser) {
	st := memory.New()
	header := genlog.Header(3)
	if err := st.Put(t.Context(), header, func(yield func(outcrop.Record, error) bool) {
		for r := range genlog.Records(3, 300_000) {
			if !yield(r, nil) {
				return
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	const nodes = 10_000
	if err := st.Put(t.Context(), outcrop.NewHeader("nodes", 1_800_000_000_000, "/home/dev"), func(yield func(outcrop.Record, error) bool) {
		for i := range nodes {
			ev := outcrop.Event{Type: "user/message", Seq: outcrop.Seq(i), Time: 1_800_000_000_000 + int64(i), Op: outcrop.Tail,
				Data: json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":"message number %d"}],"source":{"kind":"user"},"role":"user","id":"m%d"}`, i, i))}
			if !yield(outcrop.Record{Event: ev}, nil) {
				return
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	url, _ := pages(t, st)
	p := b.tab(t, 1200, 800)
	for id, what := range map[string]string{"nodes": "10,000 nodes", header.ID: "300,000 events"} {
		p.open(url + "#/s/" + id + "/strata")
		p.wait(ready["strata"])
		bare, asked, drawn, tiles := cursorStep(p)
		t.Logf("a step of the cursor at %s: %.1f ms until the answer is there, %.1f ms to draw %.0f tiles; a bare question takes %.1f ms", what, asked, drawn, tiles, bare)
	}
	heap := func() float64 {
		t.Helper()
		used, err := chromedp.Run(p.ctx, func(ctx context.Context, target *chromedp.Target) (float64, error) {
			if _, err := cdp.Call(ctx, target, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
				return 0, err
			}
			got, err := cdp.Call(ctx, target, runtime.GetHeapUsage, cdp.Empty{})
			return got.UsedSize, err
		})
		if err != nil {
			t.Fatal(err)
		}
		return used
	}
	// A frame is blank when 40 pixels of the screen have no row. Small steps must
	// never be; neither may jumps, once their frame is there.
	const scroll = `(async (selector, steps, px) => {
		const el = document.querySelector(selector);
		const frame = () => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)));
		let blank = 0, slow = 0, began = performance.now();
		const look = () => {
			const box = el.getBoundingClientRect();
			let to = box.top;
			for (const r of [...el.querySelectorAll('.row')].map(r => r.getBoundingClientRect()).sort((a, b) => a.top - b.top)) {
				if (r.bottom < to) continue;
				if (r.top > to + 40) break;
				to = r.bottom;
			}
			if (to < box.bottom - 40) blank++;
		};
		const end = () => el.scrollHeight - el.clientHeight;
		el.scrollTop = 0;
		await frame();
		for (let i = 0; i <= steps; i++) {
			el.scrollTop = px ? el.scrollTop + px : end() * i / steps;
			const t0 = performance.now();
			await frame();
			slow = Math.max(slow, performance.now() - t0);
			look();
		}
		return { blank, slow, mean: (performance.now() - began) / steps, end: end() - el.scrollTop, height: el.scrollHeight };
	})`
	type seen struct{ Blank, Slow, Mean, End, Height float64 }
	for view, selector := range map[string]string{"log": ".scroll.log", "talk": ".scroll.conversation"} {
		p.open(url + "#/s/" + header.ID + "/" + view)
		p.wait(ready[view])
		eval[seen](p, scroll+fmt.Sprintf("(%q, 30, 0)", selector)) // everything is warm
		before := heap()
		jumps := eval[seen](p, scroll+fmt.Sprintf("(%q, 200, 0)", selector))
		steps := eval[seen](p, scroll+fmt.Sprintf("(%q, 100, 350)", selector))
		after := heap()
		t.Logf("%s: height %.0f px, blank %.0f of 200 jumps and %.0f of 100 steps, mean %.0f and %.0f ms, slowest %.0f and %.0f ms, heap %.1f then %.1f MB",
			view, jumps.Height, jumps.Blank, steps.Blank, jumps.Mean, steps.Mean, jumps.Slow, steps.Slow, before/1e6, after/1e6)
		if jumps.Blank+steps.Blank > 0 {
			t.Errorf("%s: blank frames: %.0f of the jumps, %.0f of the steps", view, jumps.Blank, steps.Blank)
		}
		if after > before+12e6 {
			t.Errorf("%s: the page grew from %.1f to %.1f MB", view, before/1e6, after/1e6)
		}
		p.keys(kb.End)
		p.wait(ready[view])
	}
}

// provider is a model that answers as a test says, and the environment and
// configuration that lead to it.
func provider(t *testing.T, dir string, answer func(n int, body string) llmtest.Reply) (env map[string]string) {
	t.Helper()
	model := httptest.NewServer(llmtest.New(llmtest.Options{
		Rules:   llmtest.Rules{Profile: llmtest.OpenAI},
		Replies: func(n int, body []byte) llmtest.Reply { return answer(n, string(body)) },
		Session: func(_ *http.Request, _ []byte) string { return "" },
	}))
	t.Cleanup(model.Close)
	config := filepath.Join(dir, "config.toml")
	text := fmt.Sprintf("model = \"mock:m\"\n[providers.mock]\nkind = \"openai\"\nbase_url = %q\nkey_env = \"MOCK_KEY\"\nquirks = { max_tokens = \"max_completion_tokens\" }\n[providers.mock.models.\"m\"]\nwindow = 32000\nmax_output = 2000\nimages = true\nprice = { input = 1000000, output = 2000000, cache_read = 100000, cache_write = 0 }\n", model.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"OUTCROP_CONFIG": config, "MOCK_KEY": "key"}
}

// prompt types a prompt into the composer and sends it.
func (p *tab) prompt(text string) {
	p.t.Helper()
	p.keys("w")
	p.wait("document.activeElement.matches('.composer textarea')")
	// A key that is sent like this also comes as a character, and so it does when
	// the composer had the focus before.
	eval[any](p, "(i => { i.value = ''; i.dispatchEvent(new Event('input')); })(document.activeElement)")
	p.do(chromedp.KeyEvent(text))
	p.keys(kb.Enter)
}

func working(t *testing.T, b *browser) {
	dir, st := demo(t)
	gate := make(chan struct{})
	env := provider(t, dir, func(_ int, body string) llmtest.Reply {
		now := body[strings.LastIndex(body, `"role":"user"`):] // the last prompt, and what was done since
		switch {
		case strings.Contains(now, `"role":"tool"`):
			return llmtest.Reply{Text: "The file is written: **done**."}
		case strings.Contains(now, "Write a file"):
			return llmtest.Reply{Text: "I write it.", Calls: []llmtest.Call{{Name: "write", Arguments: `{"path":"written-by-test.txt","content":"one line\n"}`}}}
		case strings.Contains(now, "wait for the gate"):
			<-gate
			return llmtest.Reply{Text: "after the gate"}
		}
		return llmtest.Reply{Text: "# A heading\n\nHello from the model, with `code`."}
	})
	s := serve(t, dir, st, env, "--no-token", "--cwd", filepath.Join(dir, "work"))
	defer sync.OnceFunc(func() { close(gate) })()
	p := b.tab(t, 1200, 900)
	p.open(s.page("demo", "talk"))
	p.wait(ready["talk"])

	// Continue, with the model of the configuration instead of the script's.
	eval[any](p, "(i => { i.value = 'mock:m'; i.dispatchEvent(new Event('input')); })(document.querySelector('input.with'))")
	p.click("button:Continue here")
	p.wait("document.querySelector('.composer textarea')")

	// Send: the answer appears, as markdown.
	prompt := func(text string) { t.Helper(); p.prompt(text) }
	prompt("Say hello")
	p.wait("[...document.querySelectorAll('oc-markdown h1')].some(h => h.innerText === 'A heading')")
	p.wait("document.querySelector('.phase')?.innerText === 'idle'")

	// Approve: the question is on the page; once is enough.
	prompt("Write a file")
	p.wait("document.querySelector('.question')?.innerText.includes('one line')")
	p.click("button:Once")
	p.wait("[...document.querySelectorAll('oc-markdown strong')].some(h => h.innerText === 'done')")
	p.wait("!document.querySelector('.question') && document.querySelector('.phase')?.innerText === 'idle'")
	if text, err := os.ReadFile(filepath.Join(dir, "work", "written-by-test.txt")); err != nil || string(text) != "one line\n" {
		t.Errorf("the file holds %q: %v", text, err)
	}

	// Refuse, with a reason.
	prompt("Write a file again: written-by-nobody")
	p.wait("document.querySelector('.question')")
	p.click("button:No, and tell the model why…")
	p.wait("document.activeElement.matches('dialog textarea')")
	p.do(chromedp.KeyEvent("not now"))
	p.click("button:Refuse")
	p.wait("!document.querySelector('.question')")

	// Steer and cancel a turn that takes its time.
	p.wait("document.querySelector('.phase')?.innerText === 'idle'")
	prompt("wait for the gate")
	p.wait("document.querySelector('.phase.busy') && document.querySelector('.status').innerText.includes('turn')")
	prompt("and be quick")
	p.wait("document.querySelector('.composer textarea').value.trim() === ''")
	p.click("button:Cancel turn")
	p.wait("document.querySelector('.phase')?.innerText === 'idle'")

	// Let go: somebody else may write it.
	p.click("button:Let go")
	p.wait("[...document.querySelectorAll('button')].some(b => b.textContent.trim() === 'Continue here')")
}

func editing(t *testing.T, b *browser) {
	dir, st := demo(t)
	env := provider(t, dir, func(n int, body string) llmtest.Reply {
		// The last prompt decides: the earlier ones are in the body too.
		if strings.LastIndex(body, "Name three rocks") > strings.LastIndex(body, "Tell me more") {
			return llmtest.Reply{Text: "granite, slate, chalk"}
		}
		return llmtest.Reply{Text: fmt.Sprintf("answer %d: %s", n, strings.Repeat("rock ", 40))}
	})
	s := serve(t, dir, st, env, "--no-token", "--cwd", filepath.Join(dir, "work"))
	p := b.tab(t, 1200, 900)
	p.open(s.page("demo", "talk"))
	p.wait(ready["talk"])
	act := func(seq int, what string) {
		t.Helper()
		find := fmt.Sprintf("[...document.querySelectorAll('.row[data-seq=\"%d\"] .acts button')].find(b => b.textContent === %q && !b.disabled)", seq, what)
		p.wait(find)
		eval[any](p, find+".click()")
	}

	// Pin and unpin.
	act(99, "pin")
	p.wait("document.querySelector('.row[data-seq=\"99\"] .badge')?.innerText === 'pinned'")
	act(99, "unpin")
	p.wait("!document.querySelector('.row[data-seq=\"99\"] .badge')")

	// Rename.
	p.click("button:rename")
	p.wait("document.activeElement.matches('dialog input')")
	eval[any](p, "document.activeElement.select()")
	p.do(chromedp.KeyEvent("Ridge <b>report</b>"))
	p.keys(kb.Enter)
	p.wait("document.querySelector('h1').innerText === 'Ridge <b>report</b>'")

	// Edit and resend: a new version, the old one a key away.
	eval[any](p, "(i => { i.value = 'mock:m'; i.dispatchEvent(new Event('input')); })(document.querySelector('input.with'))")
	p.click("button:Continue here")
	p.wait("document.querySelector('.composer')")
	act(92, "edit")
	p.wait("document.activeElement.matches('dialog textarea')")
	eval[any](p, "document.activeElement.select()")
	p.do(chromedp.KeyEvent("Name three rocks"))
	eval[any](p, "document.querySelector('dialog button.primary').click()")
	p.has("granite, slate, chalk")
	p.wait("document.querySelector('.versions')?.innerText.replace(/\\s+/g, '').includes('2/2')")
	p.click("[aria-label='Earlier version']")
	p.wait("document.querySelector('.row[data-seq=\"92\"]')?.innerText.includes('Which finding matters most?')")
	p.wait("document.querySelector('.row[data-seq=\"92\"]').innerText.includes('rewound')")
	p.click("[aria-label='Later version']:not(:disabled)")
	p.has("granite, slate, chalk")

	// Retry.
	last := eval[int](p, "document.querySelector('oc-session').model.facts.prompts.at(-1)")
	p.keys(kb.End)
	act(last, "retry")
	p.click("button:Retry")
	p.wait(fmt.Sprintf("document.querySelector('oc-session').model.facts.prompts.at(-1) > %d", last))
	p.wait(fmt.Sprintf("[...document.querySelectorAll('.row')].some(r => r.dataset.seq > %d + 5 && r.innerText.includes('granite'))", last))
	p.wait("document.querySelector('.phase')?.innerText === 'idle'")

	// Compact, by hand: first what it would do.
	before := eval[int](p, "document.querySelector('oc-session').model.facts.generation")
	p.prompt("Tell me more")
	p.has("rock rock rock") // which only this answer says
	p.wait("document.querySelector('.phase')?.innerText === 'idle'")
	p.click("button:Compact")
	p.wait("document.querySelector('dialog, .note')")
	if eval[bool](p, "!!document.querySelector('dialog')") {
		eval[any](p, "document.querySelector('dialog button.primary').click()")
		p.wait(fmt.Sprintf("document.querySelector('oc-session').model.facts.generation > %d", before))
	}

	// Rewind to the last prompt: it and its answer leave the surface.
	prompts := eval[[]int](p, "document.querySelector('oc-session').model.facts.prompts")
	p.keys(kb.Escape, kb.End) // out of the composer first
	act(prompts[len(prompts)-1], "rewind")
	p.wait("document.querySelector('dialog')?.innerText.includes('leave the model')")
	p.click("button:Rewind")
	p.has("rewound")

	// Fork: another session, the first one as it was.
	p.click("button:Fork")
	p.wait("!location.hash.includes('/demo/') && document.querySelector('oc-session').model.id !== 'demo'")
	p.wait("document.querySelector('.session-facts a')?.innerText === 'demo'")
	p.keys("g")
	p.wait("document.querySelectorAll('.session').length === 2")
	p.keys("T")
	p.wait("document.querySelector('.session.depth-1 .branch')")
}

func caring(t *testing.T, b *browser) {
	dir, st := demo(t)
	s := serve(t, dir, st, nil, "--no-token")
	p := b.tab(t, 1100, 800)
	p.open(s.url)
	p.wait("document.querySelector('.session.chosen')")

	// Taken away, in each form that is a file.
	p.keys("e")
	p.wait("document.querySelectorAll('dialog .choices a').length >= 4")
	for _, name := range []string{"md", "html", "jsonl", "zip"} {
		got := eval[[]string](p, fmt.Sprintf(`(async () => {
			const a = [...document.querySelectorAll('dialog .choices a')].find(a => a.innerText === %q);
			const r = await fetch(a.href);
			return [String(r.status), r.headers.get('Content-Disposition'), (await r.text()).slice(0, 200)];
		})()`, name))
		if got[0] != "200" || got[1] != `attachment; filename="session-demo.`+name+`"` || got[2] == "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	p.keys(kb.Escape)
	p.wait("!document.querySelector('dialog')")

	// Into the archive, with what comes from it, and back.
	p.keys("f")
	p.wait("!location.hash.includes('/demo/') && document.querySelector('.session-facts a')?.innerText === 'demo'")
	p.keys("g")
	p.wait("document.querySelectorAll('.session').length === 2")
	p.keys("T")
	p.wait("document.querySelector('.session.depth-1 .branch')")
	p.keys("k", "A")
	p.wait("document.querySelector('dialog')?.innerText.includes('1 session comes from it')")
	p.click("button:Archive")
	p.has("No sessions in")
	p.click("a[href='#/archive']")
	p.wait("document.querySelectorAll('.session.shelved').length === 2")
	p.keys("j", "u")
	p.wait("document.querySelectorAll('.session.shelved').length === 1")
	p.keys("u")
	p.has("Nothing was put into the archive.")
	p.keys("g")
	p.wait("document.querySelectorAll('.session').length === 2")

	// From its own page into the trash: the dialogue can be left, nothing happens.
	p.open(s.page("demo", "talk"))
	p.wait(ready["talk"])
	for _, end := range []string{"Cancel", "Delete"} {
		p.click("button:more…")
		p.wait("document.querySelector('dialog .choices .danger')")
		eval[any](p, "document.querySelector('dialog .choices .danger').click()")
		p.wait("document.querySelector('dialog')?.innerText.includes('Delete this session?')")
		p.click("button:" + end)
		p.wait("!document.querySelector('dialog')")
	}
	p.has("No sessions in")
	p.click("a[href='#/trash']")
	p.wait("document.querySelectorAll('.session.shelved').length === 2")
}
