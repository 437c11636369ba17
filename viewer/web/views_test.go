package web_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// ready is true when a view shows what it is for.
var ready = map[string]string{
	"talk":     "document.querySelector('oc-conversation .row .item, oc-conversation .row .turn, oc-conversation .empty') && !document.querySelector('.item.waiting')",
	"strata":   "document.querySelector('.strata:not(.unread) .at') && (document.querySelector('.tree-item') || document.querySelector('.strata .empty') || / 0 nodes|^0 nodes/.test(document.querySelector('.summary').innerText))",
	"log":      "document.querySelector('.log-row .type')",
	"requests": "document.querySelector('.request h2') || document.querySelector('.request-list .empty')",
	"numbers":  "document.querySelector('.figure') && (document.querySelector('.uplot') || document.querySelector('.numbers .empty'))",
}

var viewNames = []string{"talk", "strata", "log", "requests", "numbers"}

func everyView(t *testing.T, b *browser) {
	dir, ids := corpus(t)
	s := serve(t, dir, "jsonl:"+dir, nil, "--no-token")
	p := b.tab(t, 1100, 800)
	p.open(s.url)
	p.wait(fmt.Sprintf("document.querySelector('oc-sessions').total === %d", len(ids)))
	p.wait("document.querySelectorAll('.session').length > 8")
	listed := eval[[]string](p, "document.querySelector('oc-sessions').rows.map(r => r.id)")
	for _, id := range ids {
		if !slices.Contains(listed, id) {
			t.Errorf("%s is not in the list", id)
		}
	}
	for _, id := range ids {
		for _, view := range viewNames {
			eval[any](p, fmt.Sprintf("location.hash = %q", "#/s/"+id+"/"+view))
			p.wait(fmt.Sprintf("document.querySelector('oc-session')?.model?.id === %q && document.querySelector('nav [aria-current=page]').getAttribute('href').endsWith(%q)", id, "/"+view))
			p.wait(ready[view])
		}
	}
}

func narrow(t *testing.T, b *browser) {
	dir, store := demo(t)
	s := serve(t, dir, store, nil, "--no-token")
	for _, width := range []int64{400, 3840} {
		p := b.tab(t, width, 800)
		p.open(s.url)
		p.wait("document.querySelector('.session')")
		check := func(where string) {
			t.Helper()
			if wide := eval[int64](p, "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"); wide > width {
				t.Errorf("%s is %d pixels wide on a screen of %d", where, wide, width)
			}
			// What is cut off cannot be used, unless its box scrolls.
			out := eval[[]string](p, `[...document.querySelectorAll('button, select, input, textarea, a')].filter(e => {
				const r = e.getBoundingClientRect();
				if (!r.width || getComputedStyle(e).visibility === 'hidden' || e.closest('.skip, .tabs, pre, .diff, .table-scroll, table')) return false;
				return r.right > innerWidth + 1 || r.left < -1;
			}).map(e => e.outerHTML.slice(0, 120))`)
			if len(out) > 0 {
				t.Errorf("%s at %d: out of sight: %s", where, width, strings.Join(out, "\n"))
			}
		}
		check("the list")
		for _, view := range viewNames {
			p.open(s.page("demo", view) + "?event=85")
			p.wait(ready[view])
			p.wait("document.querySelector('.event .facts')")
			check(view)
		}
	}
}

// faint finds text whose contrast is under that of WCAG AA: 4.5, and 3 for
// large text; and borders of controls under 3.
const faint = `(() => {
	const parse = c => { const m = c.match(/[\d.]+/g).map(Number); return { r: m[0], g: m[1], b: m[2], a: m[3] ?? 1 }; };
	const lum = ({ r, g, b }) => { const f = v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
	const over = (top, under) => ({ r: top.r * top.a + under.r * (1 - top.a), g: top.g * top.a + under.g * (1 - top.a), b: top.b * top.a + under.b * (1 - top.a), a: 1 });
	const ground = e => { const stack = []; for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.a > 0) { stack.push(c); if (c.a === 1) break; } } return stack.reduceRight((under, top) => over(top, under), { r: 255, g: 255, b: 255, a: 1 }); };
	const out = new Set();
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n = walk.nextNode(); n; n = walk.nextNode()) {
		const e = n.parentElement;
		if (!n.textContent.trim() || e.closest('noscript, .u-legend, [disabled]') || !e.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
		const s = getComputedStyle(e);
		const [a, b] = [lum(over(parse(s.color), ground(e))), lum(ground(e))].sort((x, y) => x - y);
		const need = parseFloat(s.fontSize) >= 24 || (parseFloat(s.fontSize) >= 18.66 && s.fontWeight >= 700) ? 3 : 4.5;
		if ((b + 0.05) / (a + 0.05) < need - 0.01) out.add(e.className + ' ' + e.tagName + ': ' + n.textContent.trim().slice(0, 40) + ' ' + s.color);
	}
	return [...out];
})()`

func contrast(t *testing.T, b *browser) {
	dir, store := demo(t)
	s := serve(t, dir, store, nil, "--no-token")
	p := b.tab(t, 1280, 900)
	for _, theme := range []string{"light", "dark"} {
		if _, err := chromedp.Run(p.ctx, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
			return chromedp.Void{}, err
		}); err != nil {
			t.Fatal(err)
		}
		p.open(s.url)
		p.wait("document.querySelector('.session')")
		if got := eval[string](p, "document.documentElement.dataset.theme"); got != theme {
			t.Errorf("the system is %s, the page %s", theme, got)
		}
		for _, view := range viewNames {
			p.open(s.page("demo", view) + "?event=85")
			p.wait(ready[view])
			p.wait("document.querySelector('.event .facts')")
			if view == "talk" {
				p.keys(kb.Home, "O")
				p.wait("document.querySelector('pre.code')")
			}
			if bad := eval[[]string](p, faint); len(bad) > 0 {
				t.Errorf("%s, %s: too faint:\n%s", theme, view, strings.Join(bad, "\n"))
			}
		}
	}
	// The reader's choice is stronger than the system's, and stays.
	p.keys("t")
	p.wait("document.documentElement.dataset.theme === 'light'")
	p.open(s.url)
	p.wait("document.documentElement.dataset.theme === 'light'")
	p.keys("t")
	p.wait("document.documentElement.dataset.theme === 'dark'")
}

// screens looks at each view of the demo, and writes docs/screens with -update.
func screens(t *testing.T, b *browser) {
	from, _ := demo(t)
	dir, _ := corpus(t)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(from, "store"))); err != nil {
		t.Fatal(err)
	}
	s := serve(t, dir, "jsonl:"+dir, nil, "--no-token")
	p := b.tab(t, 1200, 760)
	for _, sc := range []struct{ name, hash, theme, ready, then string }{
		{"sessions", "#/", "light", "document.querySelectorAll('.session').length > 8 && !document.querySelector('oc-sessions').rows.some(r => r.turns === null && r.state === 'ok')", ""},
		{"conversation", "#/s/demo/talk", "light", ready["talk"], ""},
		{"strata", "#/s/demo/strata?event=85", "light", ready["strata"], "document.querySelector('.event .facts')"},
		{"strata-dark", "#/s/demo/strata", "dark", ready["strata"], ""},
		{"log", "#/s/demo/log", "light", ready["log"], ""},
		{"requests", "#/s/demo/requests", "light", ready["requests"], "document.querySelector('.digest code.checked')"},
		{"numbers", "#/s/demo/numbers", "dark", ready["numbers"], ""},
	} {
		p.open(s.url)
		eval[any](p, fmt.Sprintf("localStorage.setItem('outcrop-theme', %q)", sc.theme))
		p.open(s.url + sc.hash)
		p.wait(sc.ready)
		p.wait("document.fonts.status === 'loaded'")
		if sc.name == "requests" {
			p.keys("x")
		}
		if sc.then != "" {
			p.wait(sc.then)
		}
		// Nothing moves while a view is loaded.
		moved := eval[float64](p, `new Promise(r => new PerformanceObserver(l => r(l.getEntries().reduce((n, e) => n + (e.hadRecentInput ? 0 : e.value), 0))).observe({ type: 'layout-shift', buffered: true }) ?? setTimeout(() => r(0), 400))`)
		if moved > 0.05 {
			t.Errorf("%s: the layout shifts by %.3f", sc.name, moved)
		}
		eval[any](p, `document.querySelector('.store')?.replaceChildren('jsonl:~/.local/share/outcrop/sessions');
			document.querySelectorAll('.path').forEach(e => e.innerText.startsWith('/home/') || e.replaceChildren('/home/dev/ridge'));
			new Promise(r => setTimeout(r, 300))`)
		picture := p.shot()
		if len(picture) > 150<<10 {
			t.Errorf("%s takes %d bytes", sc.name, len(picture))
		}
		if *update {
			to := filepath.Join("..", "..", "docs", "screens", sc.name+".png")
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, picture, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func keysAlone(t *testing.T, b *browser) {
	dir, store := demo(t)
	s := serve(t, dir, store, nil, "--no-token")
	p := b.tab(t, 1200, 800)
	p.open(s.url)
	p.wait("document.querySelector('.session.chosen')")
	p.keys("?")
	p.wait("document.querySelector('dialog[open]')?.innerText.includes('Keys: Sessions')")
	p.keys(kb.Escape, kb.Enter)
	for i, view := range viewNames {
		p.keys(fmt.Sprint(i + 1))
		p.wait(ready[view])
		p.keys("?")
		p.wait("document.querySelector('dialog[open]')?.innerText.includes('Keys: ')")
		p.keys(kb.Escape)
		p.wait("!document.querySelector('dialog')")
	}
	// Conversation: prompts, folds, what is found in a folded part.
	p.keys("1")
	p.wait(ready["talk"])
	p.keys("p", "p")
	p.wait("document.querySelector('.row.flash[data-seq=\"53\"]') || document.querySelector('.row.flash[data-seq=\"4\"]')")
	p.keys("/")
	p.wait("document.activeElement.matches('.find input')")
	p.keys("a", "q", "u", "i", "f", "e", "r")
	p.wait("document.querySelector('.find .found').innerText !== ''")
	p.keys(kb.Escape)
	p.wait("!document.querySelector('oc-find')")
	// Strata: the cursor and the tree.
	p.keys("2")
	p.wait(ready["strata"])
	p.keys(",", ",")
	p.wait("document.querySelector('.at').innerText.includes('99')")
	p.keys("<")
	p.wait("document.querySelector('.at').innerText.includes('85')")
	p.keys("[")
	p.wait("!document.querySelector('.at').innerText.includes('85')")
	p.keys("v")
	p.wait("document.querySelector('[role=table] .table-row')")
	p.keys("v", "e")
	p.wait("document.querySelector('[aria-pressed=true]')?.innerText === 'Equal widths'")
	p.keys("e")
	// Log: an event and back.
	p.keys("3")
	p.wait(ready["log"])
	p.keys(kb.Home)
	p.wait("document.querySelector('.log-row.chosen')?.dataset.index === '0'")
	p.keys("j", kb.Enter)
	p.wait("document.querySelector('.event h2')?.innerText === 'Event 1'")
	p.keys(kb.Escape)
	p.wait("!document.querySelector('.event')")
	p.keys("g")
	p.wait("document.querySelector('.session')")
	// Everything that can be clicked can be reached, in order, with a sign.
	lost := eval[[]string](p, `[...document.querySelectorAll('[tabindex="-1"], [onclick]')].filter(e => !e.matches('[role=treeitem], .skip')).map(e => e.outerHTML.slice(0, 100))`)
	if len(lost) > 0 {
		t.Errorf("out of reach of the keys: %q", lost)
	}
}

func ariaTree(t *testing.T, b *browser) {
	dir, store := demo(t)
	s := serve(t, dir, store, nil, "--no-token")
	p := b.tab(t, 1200, 900)
	p.open(s.page("demo", "strata"))
	p.wait(ready["strata"])
	p.wait("document.querySelector('[role=treeitem][aria-selected=true]')")
	// The names of the tree as a screen reader gets them.
	names := func() []string {
		t.Helper()
		nodes, err := chromedp.Run(p.ctx, func(ctx context.Context, target *chromedp.Target) ([]*accessibility.Node, error) {
			got, err := cdp.Call(ctx, target, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
			return got.Nodes, err
		})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, n := range nodes {
			if n.Role != nil && strings.Contains(string(n.Role.Value), "treeitem") && n.Name != nil {
				out = append(out, string(n.Name.Value))
			}
		}
		return out
	}
	if got := names(); len(got) < 2 || !strings.Contains(strings.Join(got, "|"), "99 assistant") {
		t.Fatalf("the tree reads: %q", got)
	}
	chosen := func(want string) {
		t.Helper()
		p.wait(fmt.Sprintf("document.querySelector('[role=treeitem][aria-selected=true]')?.innerText.startsWith(%q)", want))
	}
	eval[any](p, "document.querySelector('[role=treeitem][aria-selected=true]').focus()")
	steps := []struct{ key, want string }{
		{kb.ArrowLeft, "92 user"}, {kb.ArrowLeft, "85 checkpoint"}, {kb.ArrowDown, "4 user"}, {kb.ArrowRight, "19 assistant"},
		{kb.ArrowRight, "80 tool"}, {kb.ArrowDown, "21 tool"}, {kb.ArrowUp, "80 tool"}, {kb.ArrowUp, "85 checkpoint"},
	}
	for _, step := range steps {
		p.keys(step.key)
		chosen(step.want)
		p.wait("document.activeElement.getAttribute('aria-selected') === 'true'")
	}
	p.keys(kb.Enter)
	p.wait("document.querySelector('.event h2')?.innerText === 'Event 85'")
	if level := eval[string](p, "document.querySelector('[aria-selected=true]').getAttribute('aria-level')"); level != "1" {
		t.Errorf("85 is at level %s", level)
	}
}
