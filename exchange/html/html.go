// Package html writes a session as one HTML file that needs nothing else: no
// network, no other file. Calls, reasoning and context are folded, images are
// in it as data, a search box goes over everything, folded or not.
//
// # Safety
//
// Messages are hostile text. Markdown in them becomes elements of a fixed list
// (goldmark, which writes no HTML of a message, then bluemonday, which lets only
// these elements through); all else is escaped text with control characters
// shown. A content policy in the file allows its own style and script, by their
// digests, and images that are data. Links lead to http, https and mailto; an
// image that a message points to is a link.
//
// # Size
//
// The session is written as it is read. Of a long session only the first and the
// last turns are open, so that a browser lays out those alone; long results are
// cut in the middle with the size said, very long messages are plain text.
package html

import (
	"bufio"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/message"
)

// DefaultCut is how many bytes of one result are written, unless Options say
// otherwise.
const DefaultCut = 60_000

const (
	// largestImage is how many bytes of an image are put into the file.
	largestImage = 16 << 20
	// longestMarkdown: longer texts are shown as they are, which needs no layout.
	longestMarkdown = 100_000
	// openTurns: a session with more turns shows the last ones open, and folds
	// the others.
	openTurns = 40
	lastOpen  = 10
)

//go:embed page.css
var style string

//go:embed page.js
var script string

// Options of a page. The zero value masks secrets and writes everything.
type Options struct {
	transcript.Options
	// Cut is how many bytes of a result, or of the arguments of a call, are
	// written; 0 is DefaultCut, a negative number cuts nothing.
	Cut int
}

// Write writes a session. The error is one of reading or of w; damage of the
// log is in what is returned and in the page.
func Write(ctx context.Context, w io.Writer, src transcript.Source, o Options) (*transcript.Transcript, error) {
	t, err := transcript.Read(ctx, src, o.Options)
	if err != nil {
		return nil, err
	}
	if o.Cut == 0 {
		o.Cut = DefaultCut
	}
	p := &page{ctx: ctx, w: bufio.NewWriterSize(w, 64<<10), t: t, o: o}
	p.head()
	for it, err := range t.Items(ctx) {
		if err != nil {
			return t, err
		}
		p.item(&it)
	}
	p.end()
	return t, p.w.Flush()
}

type page struct {
	ctx   context.Context
	w     *bufio.Writer
	t     *transcript.Transcript
	o     Options
	turns []turn
	open  bool // the element of a turn
}

// turn is a line of the table of turns.
type turn struct {
	n     int
	first string // line of the first prompt
}

func (p *page) raw(s ...string) {
	for _, one := range s {
		p.w.WriteString(one)
	}
}

// esc is text of one line in HTML, esc2 text of several.
func esc(s string) string  { return html.EscapeString(term.OneLine(s)) }
func esc2(s string) string { return html.EscapeString(visible(s)) }

// visible shows control characters as escapes; the ends of lines are \n.
func visible(s string) string { return term.Text(strings.ReplaceAll(s, "\r\n", "\n")) }

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (p *page) head() {
	t := p.t
	title := t.Title
	if title == "" {
		title = "Session " + t.Header.ID
	}
	p.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src ", digest(style), "; script-src ", digest(script),
		"; img-src data:; base-uri 'none'; form-action 'none'\">\n",
		"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n",
		"<title>", esc(title), "</title>\n<style>", style, "</style>\n</head>\n<body>\n<header class=\"head\">\n<h1>", esc(title), "</h1>\n<dl class=\"facts\">")
	fact := func(name, value string) {
		if value != "" {
			p.raw("<dt>", name, "</dt><dd>", value, "</dd>\n")
		}
	}
	fact("session", "<code>"+esc(t.Header.ID)+"</code>")
	if parent := t.Header.ParentSession; parent != nil {
		fact("comes from", "<code>"+esc(*parent)+"</code>")
	}
	if t.Cwd != "" {
		fact("directory", "<code>"+esc(t.Cwd)+"</code>")
	}
	fact("model", esc(strings.Join(t.Models, ", ")))
	when := clock(t.Header.CreatedAt)
	if t.Updated > t.Header.CreatedAt {
		when += " to " + clock(t.Updated)
	}
	fact("time", when)
	fact("size", term.Plural(t.Turns, "turn")+", "+term.Plural(t.Messages, "message")+", "+term.Plural(t.Events, "event"))
	fact("shown", esc(p.o.Part()))
	if t.Damage != nil {
		fact("damage", fmt.Sprintf("<span class=\"bad\">the log can be read to event %d only: %s</span>", t.Events-1, esc(t.Why())))
	}
	p.raw("</dl>\n</header>\n<div class=\"bar\" role=\"search\" hidden>",
		"<input id=\"q\" type=\"search\" placeholder=\"Search the session\" aria-label=\"Search the session, folded parts too\">",
		"<button id=\"prev\" title=\"previous place (Shift Enter)\">Previous</button><button id=\"next\" title=\"next place (Enter)\">Next</button>",
		"<output id=\"said\" aria-live=\"polite\"></output>",
		"<button id=\"open\" title=\"open all (o)\">Open all</button><button id=\"fold\" title=\"fold all (f)\">Fold</button>",
		"<button id=\"theme\" title=\"light or dark (t)\">Theme</button><button id=\"keys\" title=\"keys (?)\">?</button></div>\n<main>\n")
}

func clock(ms int64) string {
	t := time.UnixMilli(ms).UTC()
	return "<time datetime=\"" + t.Format(time.RFC3339) + "\">" + t.Format("2006-01-02 15:04:05Z") + "</time>"
}

func (p *page) item(it *transcript.Item) {
	switch it.Kind {
	case transcript.Turn:
		p.close()
		p.turn(it)
		return
	case transcript.TurnEnd:
		p.begin(it, "note")
		p.raw("The turn ended: ", esc(it.Text), ".")
	case transcript.Gone:
		p.begin(it, "note")
		p.raw(term.Plural(it.Count, "message"), ", rewound.")
	case transcript.Edit:
		p.begin(it, "edit")
		if len(it.Blocks) == 0 {
			p.raw("History was edited, ", esc(it.Text), ".")
		} else {
			p.fold("fold", "History was edited, "+esc(it.Text), func() { p.blocks(it.Blocks) })
		}
	case transcript.Message:
		p.message(it)
	}
	p.raw("</article>\n")
}

// turn begins the element of a turn, which ends with the next one. What is
// outside of turns stands behind the turn before it.
func (p *page) turn(it *transcript.Item) {
	attr := ""
	if p.t.Turns <= openTurns || len(p.turns) == 0 || it.Turn > p.t.Turns-lastOpen {
		attr = " open"
	}
	p.turns = append(p.turns, turn{n: it.Turn})
	p.raw(fmt.Sprintf("<details class=\"turn\" id=\"t%d\"%s><summary><h2>Turn %d</h2> %s</summary>\n", len(p.turns), attr, it.Turn, clock(it.Time)))
	p.open = true
}

func (p *page) close() {
	if p.open {
		p.raw("</details>\n")
		p.open = false
	}
}

// begin opens the element of an item.
func (p *page) begin(it *transcript.Item, class string) {
	p.raw(fmt.Sprintf("<article class=\"%s\" id=\"e%d\">", class, it.Seq))
}

func (p *page) message(it *transcript.Item) {
	p.begin(it, string(it.Who))
	if it.Who == transcript.Context {
		name := "Context"
		if it.Text != "" {
			name += ": " + esc(it.Text)
		}
		p.fold("fold", name, func() { p.blocks(it.Blocks) })
		return
	}
	who := map[transcript.Who]string{transcript.User: "User", transcript.Assistant: "Assistant", transcript.Result: "Result"}[it.Who]
	p.raw("<div class=\"by\"><h3>", who, "</h3>", fmt.Sprintf("<a href=\"#e%d\">%d</a>", it.Seq, it.Seq), clock(it.Time))
	if it.Model != "" && len(p.t.Models) > 1 {
		p.raw("<span>", esc(it.Model), "</span>")
	}
	if it.Interrupted {
		p.raw("<span>interrupted</span>")
	}
	p.raw("</div>\n")
	if len(it.Blocks) == 0 {
		p.raw("<p class=\"size\">(empty)</p>")
	}
	if n := len(p.turns); it.Who == transcript.User && n > 0 && p.turns[n-1].first == "" {
		for i := range it.Blocks {
			if text := strings.TrimSpace(it.Blocks[i].Text); it.Blocks[i].Type == message.TextBlock && text != "" {
				line, _, _ := strings.Cut(text, "\n")
				p.turns[n-1].first = term.Cut(term.OneLine(line), 100)
				break
			}
		}
	}
	p.blocks(it.Blocks)
}

// fold writes a part that is closed at first. The summary is HTML.
func (p *page) fold(class, summary string, body func()) {
	p.raw("<details class=\"", class, "\"><summary>", summary, "</summary>\n")
	body()
	p.raw("</details>\n")
}

func (p *page) blocks(blocks []transcript.Block) {
	for i := range blocks {
		switch b := &blocks[i]; b.Type {
		case message.TextBlock:
			p.text(b.Text)
		case message.ReasoningBlock:
			if strings.TrimSpace(b.Text) == "" {
				p.raw("<p class=\"size\">(reasoning that only the provider can read)</p>\n")
				continue
			}
			p.fold("fold", "Reasoning, "+term.Plural(len([]rune(b.Text)), "character"), func() { p.text(b.Text) })
		case message.ToolCallBlock:
			p.call(b)
		case message.ImageBlock:
			p.image(b)
		default:
			p.fold("fold", "A block of the type "+esc(string(b.Type)), func() { p.pre(b.Text) })
		}
	}
}

func (p *page) text(s string) {
	switch {
	case strings.TrimSpace(s) == "":
	case len(s) > longestMarkdown:
		p.raw("<div class=\"text plain\">", esc2(s), "</div>\n")
	default:
		p.raw("<div class=\"text\">", markdown(visible(s)), "</div>\n")
	}
}

// call writes a call and its result.
func (p *page) call(b *transcript.Block) {
	name, class := b.Name, "fold"
	if name == "" {
		name = "result"
	}
	head := "<code>" + esc(name) + "</code>"
	if what := term.Cut(brief.Call(b.Arguments), 120); what != "" && what != "{}" {
		head += " <span class=\"what\">" + html.EscapeString(what) + "</span>"
	}
	switch r := b.Result; {
	case r == nil:
		head += " <span class=\"size\">no result</span>"
	case r.IsError:
		class, head = "fold failed", head+" <span class=\"size\">failed</span>"
	default:
		n := 0
		for i := range r.Blocks {
			n += len(r.Blocks[i].Text)
		}
		if n > 0 {
			head += " <span class=\"size\">" + term.Plural(n, "byte") + "</span>"
		}
	}
	p.fold(class, head, func() {
		if b.Arguments != "" && b.Arguments != "{}" {
			if args := []byte(b.Arguments); jsonwire.Valid(args) == nil {
				p.pre(string(jsonwire.Indent(args)))
			} else {
				p.raw("<p class=\"size\">Arguments that are no JSON:</p>")
				p.pre(b.Arguments)
			}
		}
		if b.Result != nil {
			p.result(b.Result)
		}
	})
}

func (p *page) result(r *transcript.Answer) {
	if len(r.Blocks) == 0 {
		p.raw("<p class=\"size\">(no output)</p>")
	}
	for i := range r.Blocks {
		if b := &r.Blocks[i]; b.Type == message.ImageBlock {
			p.image(b)
		} else {
			p.pre(b.Text)
		}
	}
}

// pre writes text as it is, cut in the middle when it is long.
func (p *page) pre(text string) {
	head, tail, left := transcript.Cut(text, p.o.Cut)
	p.raw("<pre>")
	if strings.HasPrefix(head, "\n") {
		p.raw("\n") // the first one is not shown
	}
	p.raw(esc2(head))
	if left > 0 {
		p.raw("<span class=\"gap\">[", term.Count(int64(left)), " of ", term.Count(int64(len(text))), " bytes left out]</span>", esc2(tail))
	}
	p.raw("</pre>\n")
}

func (p *page) image(b *transcript.Block) {
	name := b.Name
	if name == "" {
		name = "image"
	}
	raw, mediaType, _, why := p.t.Picture(p.ctx, b)
	if len(raw) > largestImage {
		raw, why = nil, term.Plural(len(raw), "byte")+", too large for a page"
	}
	if raw == nil {
		p.raw("<p class=\"size\">(", esc(name), ", attachment <code>", esc(b.Image.ID), "</code>: ", esc(why), ")</p>\n")
		return
	}
	p.raw("<img alt=\"", esc(name), "\" loading=\"lazy\" src=\"data:", mediaType, ";base64,")
	enc := base64.NewEncoder(base64.StdEncoding, p.w)
	enc.Write(raw)
	enc.Close()
	p.raw("\">\n")
}

func (p *page) end() {
	t := p.t
	p.close()
	if t.OpenTurn && p.o.Before == 0 {
		p.raw("<p class=\"size\">The last turn is open.</p>\n")
	}
	p.raw("</main>\n<nav class=\"turns\" aria-label=\"Turns\"><h2>Turns</h2><ol>\n")
	for i, one := range p.turns {
		p.raw(fmt.Sprintf("<li><a href=\"#t%d\"><b>%d</b><span>", i+1, one.n), html.EscapeString(one.first), "</span></a></li>\n")
	}
	p.raw("</ol></nav>\n<footer>Exported by outcrop.")
	switch n := t.Masked(); {
	case p.o.Raw:
	case n == 0:
		p.raw(" Nothing that looks like a secret was found.")
	default:
		p.raw(" ", term.Plural(n, "place"), " that looked like a secret masked.")
	}
	p.raw("</footer>\n<dialog id=\"help\"><h2>Keys</h2><dl>")
	for _, k := range [...][2]string{{"/", "search"}, {"Enter", "next place, with Shift the previous one"}, {"n p", "next and previous prompt"},
		{"o", "open all"}, {"f", "fold calls, reasoning and context"}, {"t", "light or dark"}, {"?", "these keys; Esc leaves them"}} {
		p.raw("<dt><kbd>", k[0], "</kbd></dt><dd>", k[1], "</dd>")
	}
	p.raw("</dl></dialog>\n<script>", script, "</script>\n</body>\n</html>\n")
}
