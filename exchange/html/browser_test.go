package html_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange/html"
	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store/memory"
)

// patience is how long a test waits for what must come. It is no claim about
// speed: it is long enough for a machine on which ten programs want each core.
const patience = time.Minute

// tab is a page in a browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

func browser(t *testing.T) *tab {
	if os.Getenv("CI") == "" || testing.Short() {
		t.Skip("starts a browser: set CI, and leave out -short, to run it")
	}
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Fatal("no browser: install chromium")
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true))...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	return &tab{t, ctx}
}

// open writes a page to a file and shows it.
func (p *tab) open(src transcript.Source, fragment string) {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), "page.html")
	f, err := os.Create(path)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := html.Write(p.ctx, f, src, html.Options{}); err != nil {
		p.t.Fatal(err)
	}
	f.Close()
	p.do(chromedp.EmulateViewport(1300, 900), chromedp.Navigate("file://"+path+fragment))
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// wait waits until a JavaScript expression is true.
func (p *tab) wait(expression string) {
	p.t.Helper()
	if _, err := chromedp.Run(p.ctx, chromedp.Poll[bool]("(() => { try { return !!("+expression+") } catch { return false } })()",
		chromedp.WithPollingInterval(15*time.Millisecond), chromedp.WithPollingTimeout(patience))); err != nil {
		state, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.querySelector('#q').value + ' | ' + document.querySelector('#said').textContent + ' | ' + document.activeElement.outerHTML.slice(0, 200)"))
		p.t.Fatalf("never true: %s: %v\n%s", expression, err, state)
	}
}

func (p *tab) keys(keys ...string) {
	p.t.Helper()
	for _, k := range keys {
		p.do(chromedp.KeyEvent(k))
	}
}

func TestThePageInABrowser(t *testing.T) {
	p := browser(t)
	hostile := `<script>hacked=1</script><img src=x onerror=hacked=1><svg onload=hacked=1>[a](javascript:hacked=1) needle in a haystack`
	p.open(session(t, hostile), "")
	p.wait("!document.querySelector('.bar').hidden")
	p.wait("typeof hacked === 'undefined' && !document.querySelector('main script, main svg')")
	p.wait("document.querySelector('article.user').innerText.includes('<script>hacked=1</script>')")
	p.wait("[...document.links].every(a => !a.href.startsWith('javascript'))")
	p.wait("performance.getEntriesByType('resource').filter(r => !r.name.startsWith('data:')).length === 0")

	// Script of a message would not run even if it got in: the policy forbids it.
	p.do(func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Evaluate[bool]("(() => { const s = document.createElement('script'); s.textContent = 'hacked=1'; document.body.append(s); return true })()")(ctx, target)
		return chromedp.Void{}, err
	})
	p.wait("typeof hacked === 'undefined'")

	// Search opens the fold that hides a place.
	p.keys("/")
	p.wait("document.activeElement.id === 'q'")
	p.keys("n", "e", "e", "d", "l", "e")
	p.wait("document.querySelector('#said').textContent === '1 of 2'")
	p.keys("\r")
	p.wait("document.querySelector('#said').textContent === '2 of 2' && document.querySelector('article.assistant.now details[open]')")
	p.keys("\x1b")
	p.wait("document.activeElement.id !== 'q' && document.querySelector('#said').textContent === ''")

	// Keys: prompts, folds, theme, help.
	p.keys("n")
	p.wait("document.querySelector('article.user.now')")
	p.keys("o")
	p.wait("[...document.querySelectorAll('main details')].every(d => d.open)")
	p.keys("f")
	p.wait("![...document.querySelectorAll('main details.fold')].some(d => d.open) && document.querySelector('details.turn').open")
	p.wait("(() => { document.querySelector('#theme').click(); return document.documentElement.dataset.theme })()")
	p.keys("?")
	p.wait("document.querySelector('#help').open")
}

// TestALargePageOpens: 300,000 events are a page that shows its last turn, finds
// text in a turn that is folded, and scrolls to it.
func TestALargePageOpens(t *testing.T) {
	p := browser(t)
	st := memory.New()
	put(t, st, genlog.Header(1), func(yield func(outcrop.Record, error) bool) {
		for r := range genlog.Records(1, 300_000) {
			if !yield(r, nil) {
				return
			}
		}
	})
	began := time.Now()
	p.open(transcript.Stored(st, genlog.Header(1).ID), "#t1500")
	p.wait("document.querySelector('#t1500').open && document.querySelector('#t1500').getBoundingClientRect().top < 900")
	t.Logf("written and shown, at turn 1500, after %v", time.Since(began).Round(time.Millisecond))
	began = time.Now()
	p.keys("/")
	p.wait("document.activeElement.id === 'q'")
	p.keys("q", "z", "x")
	p.wait("document.querySelector('#said').textContent === 'not found'")
	t.Logf("searched to the end after %v", time.Since(began).Round(time.Millisecond))
}
