// Package web_test looks at the pages with a real browser, against the real
// server.
package web_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/outcrop-dev/outcrop/internal/cli"
)

var (
	update = flag.Bool("update", false, "write docs/screens")
	slow   = flag.Float64("slow", 1, "pages compute so many times slower, as on a busy machine")
)

// TestBrowser looks at the pages with a real browser. All parts share the
// browser, each has tabs and servers of its own. Where there is none the test
// is skipped, but not in CI.
//
// It takes minutes, so it wants to be asked for: by CI, or by -update.
func TestBrowser(t *testing.T) {
	if os.Getenv("CI") == "" && !*update {
		t.Skip("takes minutes of a browser: set CI to run it")
	}
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("no browser: install chromium")
		}
		t.Skip("no browser: install chromium")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("font-render-hinting", "none"))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	b := &browser{ctx: ctx}
	for _, part := range []struct {
		name string
		run  func(*testing.T, *browser)
	}{
		{"every view shows every session of the corpus", everyView},
		{"views stay inside 400 pixels", narrow},
		{"text has contrast in both themes", contrast},
		{"the demo is shown as the screens show it", screens},
		{"hostile content is text", hostile},
		{"keys alone lead everywhere", keysAlone},
		{"the tree reads as one", ariaTree},
		{"strata follow the cursor", strataCursor},
		{"the digest is computed in the browser", digests},
		{"a token lets in once", tokens},
		{"an empty store says what to do", emptyStore},
		{"a stream that is cut loses nothing", cutStream},
		{"300,000 events scroll without a blank frame", longScroll},
		{"sessions are worked on from the page", working},
		{"history is edited from the page", editing},
		{"sessions are put away, brought back and taken away", caring},
		{"a log of a later format is gone on from", laterFormats},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, b) })
	}
}

// browser is what all parts share.
type browser struct{ ctx context.Context }

// tab is one page. What goes wrong in it is an error of the test.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string
}

func (b *browser) tab(t *testing.T, width, height int64) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(b.ctx)
	cancel := context.CancelFunc(func() {})
	if at, ok := t.Deadline(); ok {
		ctx, cancel = context.WithDeadline(ctx, at.Add(-10*time.Second)) // so that what went wrong is still said
	}
	p := &tab{t: t, ctx: ctx}
	said := chromedp.Console(ctx)
	var read sync.WaitGroup
	read.Go(func() {
		for m, err := range said {
			if err != nil {
				return
			}
			p.mu.Lock()
			p.faults = append(p.faults, fmt.Sprint(m))
			p.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		cancel()
		end()
		read.Wait()
		for _, f := range p.faults {
			// A refused call is shown to the person; browsers note it as well.
			if !strings.Contains(f, "Failed to load resource") {
				t.Errorf("the page says: %s", f)
			}
		}
	})
	p.do(chromedp.EmulateViewport(width, height))
	if *slow > 1 {
		p.do(func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
			_, err := cdp.Call(ctx, target, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: *slow})
			return chromedp.Void{}, err
		})
	}
	return p
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *tab) open(url string) {
	p.t.Helper()
	p.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url))
}

// patience is how long a test waits for what must come. It is no claim about
// speed: it is long enough for a machine on which ten programs want each core.
const patience = time.Minute

// wait waits until a JavaScript expression is true.
func (p *tab) wait(expression string) {
	p.t.Helper()
	poll := chromedp.Poll[bool]("(() => { try { return !!("+expression+") } catch { return false } })()", chromedp.WithPollingInterval(15*time.Millisecond), chromedp.WithPollingTimeout(patience))
	_, err := chromedp.Run(p.ctx, poll)
	for err != nil && strings.Contains(err.Error(), "context with specified id") {
		_, err = chromedp.Run(p.ctx, poll) // the page was on its way to another
	}
	if err != nil {
		text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText.slice(0, 3000)"))
		p.t.Fatalf("never true: %s: %v\n%s", expression, err, text)
	}
}

// has waits for text on the page.
func (p *tab) has(text string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%v in %.300s", err, expression)
	}
	return v
}

// keys presses keys, one after the other.
func (p *tab) keys(keys ...string) {
	p.t.Helper()
	for _, k := range keys {
		p.do(chromedp.KeyEvent(k))
	}
}

// click clicks what a selector finds first, or the button with a text.
func (p *tab) click(selector string) {
	p.t.Helper()
	if text, ok := strings.CutPrefix(selector, "button:"); ok {
		find := fmt.Sprintf("[...document.querySelectorAll('button')].findLast(b => b.textContent.trim() === %q && !b.disabled && b.offsetParent)", text)
		p.wait(find)
		eval[any](p, find+".click()")
		return
	}
	p.wait(fmt.Sprintf("document.querySelector(%q)", selector))
	eval[any](p, fmt.Sprintf("document.querySelector(%q).click()", selector))
}

// site is "outcrop serve", run as a person runs it.
type site struct {
	url string // without the token
	key string
	dir string
}

// page is the address of a view.
func (s *site) page(session, view string) string { return s.url + "#/s/" + session + "/" + view }

// command runs the program in dir; env is added to its environment.
func command(ctx context.Context, dir string, out io.Writer, env map[string]string, args ...string) (code int, errText string) {
	var errs bytes.Buffer
	code = cli.Main(ctx, args, cli.Env{
		Stdin: strings.NewReader(""), Stdout: out, Stderr: &errs, Dir: dir, Program: "outcrop",
		Terminal: func(any) bool { return false },
		Getenv: func(name string) string {
			if v, ok := env[name]; ok {
				return v
			}
			return map[string]string{"OUTCROP_HOME": filepath.Join(dir, "home"), "XDG_STATE_HOME": filepath.Join(dir, "state"), "XDG_CONFIG_HOME": filepath.Join(dir, "config"), "TZ": "UTC"}[name]
		},
		Now: time.Now,
	})
	return code, errs.String()
}

// serve starts the server on the store in dir, until the test ends.
func serve(t *testing.T, dir, store string, env map[string]string, more ...string) *site {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		code, text := command(ctx, dir, w, env, append([]string{"serve", "--no-open", "--addr", "127.0.0.1:0", "--store", store}, more...)...)
		if code != 130 {
			t.Errorf("serve: exit %d: %s", code, text)
		}
		w.Close()
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, r)
	url, key, _ := strings.Cut(strings.TrimSpace(line), "#k=")
	return &site{url: url, key: key, dir: dir}
}

// demo is a folder with the session of "outcrop demo" in store.
func demo(t *testing.T) (dir, store string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "demo")
	if code, text := command(t.Context(), filepath.Dir(dir), io.Discard, nil, "demo", "--dir", dir); code != 0 {
		t.Fatalf("demo: exit %d: %s", code, text)
	}
	return dir, "jsonl:" + filepath.Join(dir, "store")
}

// corpus is a store with each session of the corpus that has a place of its own.
func corpus(t *testing.T) (dir string, ids []string) {
	t.Helper()
	dir = t.TempDir()
	found, err := filepath.Glob("../../testdata/corpus/*/sessions/*/*")
	if err != nil || len(found) == 0 {
		t.Fatal("no corpus: ", err)
	}
	for _, from := range found {
		project, id := filepath.Base(filepath.Dir(from)), filepath.Base(from)
		if _, err := os.Stat(filepath.Join(from, "session.jsonl.zstd")); err != nil || slices.Contains(ids, id) {
			continue
		}
		if err := os.CopyFS(filepath.Join(dir, project, id), os.DirFS(from)); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return dir, ids
}

// shot is the page as a picture of at most 256 colours, which is small and looks
// the same: pages have few colours, the rest are shades between letters and
// ground.
func (p *tab) shot() []byte {
	p.t.Helper()
	raw, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		p.t.Fatal(err)
	}
	counts := map[color.RGBA]int{}
	box := img.Bounds()
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			counts[color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)]++
		}
	}
	most := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		most = append(most, c)
	}
	slices.SortFunc(most, func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	palette := color.Palette{}
	for _, c := range most[:min(len(most), 256)] {
		palette = append(palette, c)
	}
	small := image.NewPaletted(box, palette)
	draw.Draw(small, box, img, box.Min, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small); err != nil {
		p.t.Fatal(err)
	}
	return out.Bytes()
}

func moveTo(x, y float64) chromedp.Action[chromedp.Void] {
	return chromedp.MouseEvent(chromedp.MouseMoved, x, y)
}

func clickAt(x, y float64) chromedp.Action[chromedp.Void] { return chromedp.MouseClickXY(x, y) }
