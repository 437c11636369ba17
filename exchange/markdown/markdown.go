// Package markdown writes a session as a Markdown document that can be pasted
// into an issue or a page: a title, a table of facts, the turns, calls folded
// with their results, reasoning folded.
//
// The form is GitHub's: CommonMark with tables and details elements. Headings of
// the document have the levels 1 to 3; what a message writes as a heading comes
// below them. Nothing in a message ends the element that it stands in: code of
// ours stands in fences that are longer than any run of backticks in it, HTML
// that a message holds is text, and control characters are shown as escapes.
//
// Long results are cut in the middle, with the size said. Images are written as
// data, or handed to Options.Image, which puts them elsewhere.
package markdown

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/message"
)

// DefaultCut is how many bytes of one result are written, unless Options say
// otherwise.
const DefaultCut = 8000

// Options of a document. The zero value masks secrets and writes everything.
type Options struct {
	transcript.Options
	// Cut is how many bytes of a result, or of the arguments of a call, are
	// written; 0 is DefaultCut, a negative number cuts nothing.
	Cut int
	// Image stores an image under a name and returns the link to it, relative
	// or absolute. Nil puts images into the document as data.
	Image func(name string, b []byte) (link string, err error)
}

// Write writes a session. The error is one of reading, of w or of
// Options.Image; damage of the log is in what is returned and in the document.
func Write(ctx context.Context, w io.Writer, src transcript.Source, o Options) (*transcript.Transcript, error) {
	t, err := transcript.Read(ctx, src, o.Options)
	if err != nil {
		return nil, err
	}
	if o.Cut == 0 {
		o.Cut = DefaultCut
	}
	d := &document{ctx: ctx, w: bufio.NewWriterSize(w, 64<<10), t: t, o: o}
	d.facts()
	for it, err := range t.Items(ctx) {
		if err != nil {
			return t, err
		}
		d.item(&it)
		if d.err != nil {
			return t, d.err
		}
	}
	d.end()
	return t, d.w.Flush()
}

type document struct {
	ctx context.Context
	w   *bufio.Writer
	t   *transcript.Transcript
	o   Options
	err error // of Options.Image
}

// say writes a block of the document, an empty line behind it.
func (d *document) say(block string) {
	d.w.WriteString(block)
	d.w.WriteString("\n\n")
}

func (d *document) facts() {
	t := d.t
	title := inline(t.Title)
	if title == "" {
		title = "Session " + inline(t.Header.ID)
	}
	d.say("# " + title)
	row := func(name, value string) {
		if value != "" {
			d.w.WriteString("| " + name + " | " + value + " |\n")
		}
	}
	d.w.WriteString("| | |\n|---|---|\n")
	row("session", cell(t.Header.ID))
	if t.Header.ParentSession != nil {
		row("comes from", cell(*t.Header.ParentSession))
	}
	row("directory", cell(t.Cwd))
	var models []string
	for _, m := range t.Models {
		models = append(models, cell(m))
	}
	row("model", strings.Join(models, ", "))
	when := term.Time(t.Header.CreatedAt)
	if t.Updated > t.Header.CreatedAt {
		when += " to " + term.Time(t.Updated)
	}
	row("time", when)
	row("size", term.Plural(t.Turns, "turn")+", "+term.Plural(t.Messages, "message")+", "+term.Plural(t.Events, "event"))
	row("shown", d.o.Part())
	if t.Damage != nil {
		row("damage", "the log can be read to event "+fmt.Sprint(t.Events-1)+" only: "+inline(t.Why()))
	}
	d.w.WriteString("\n")
}

// cell is code in a cell of a table, where a bar needs its backslash even then.
func cell(s string) string { return strings.ReplaceAll(codeSpan(s), "|", `\|`) }

func (d *document) item(it *transcript.Item) {
	switch it.Kind {
	case transcript.Turn:
		d.say(fmt.Sprintf("## Turn %d", it.Turn))
	case transcript.TurnEnd:
		d.say("*The turn ended: " + inline(it.Text) + ".*")
	case transcript.Gone:
		d.say("*" + term.Plural(it.Count, "message") + ", rewound.*")
	case transcript.Edit:
		if len(it.Blocks) == 0 {
			d.say("*History was edited, " + inline(it.Text) + ".*")
			return
		}
		d.fold(htmlLine("History was edited, "+it.Text), func() { d.blocks(it.Blocks) })
	case transcript.Message:
		d.message(it)
	}
}

func (d *document) message(it *transcript.Item) {
	switch it.Who {
	case transcript.Context:
		name := "Context"
		if it.Text != "" {
			name += ": " + it.Text
		}
		d.fold(htmlLine(name), func() { d.blocks(it.Blocks) })
		return
	case transcript.User:
		d.say("### User")
	case transcript.Assistant:
		head := "### Assistant"
		if it.Interrupted {
			head += " (interrupted)"
		}
		d.say(head)
	}
	if len(it.Blocks) == 0 {
		d.say("*(empty)*")
	}
	d.blocks(it.Blocks)
}

// fold writes a part that is closed at first. The summary is HTML.
func (d *document) fold(summary string, body func()) {
	d.say("<details><summary>" + summary + "</summary>")
	body()
	d.say("</details>")
}

func (d *document) blocks(blocks []transcript.Block) {
	for i := range blocks {
		switch b := &blocks[i]; b.Type {
		case message.TextBlock:
			d.text(b.Text)
		case message.ReasoningBlock:
			if strings.TrimSpace(b.Text) == "" {
				d.say("*(reasoning that only the provider can read)*")
				continue
			}
			d.fold("Reasoning, "+term.Plural(len([]rune(b.Text)), "character"), func() { d.text(b.Text) })
		case message.ToolCallBlock:
			d.call(b)
		case message.ImageBlock:
			d.image(b)
		default:
			d.fold(htmlLine("A block of the type "+string(b.Type)), func() { d.fence("json", b.Text) })
		}
	}
}

// call writes a call and its result.
func (d *document) call(b *transcript.Block) {
	name := b.Name
	if name == "" {
		name = "result"
	}
	head := "<code>" + htmlLine(name) + "</code>"
	if what := term.Cut(brief.Call(b.Arguments), 100); what != "" && what != "{}" {
		head += " <code>" + html.EscapeString(what) + "</code>"
	}
	switch {
	case b.Result == nil:
		head += " (no result)"
	case b.Result.IsError:
		head += " (failed)"
	}
	d.fold(head, func() {
		if b.Arguments != "" && b.Arguments != "{}" {
			if args := []byte(b.Arguments); jsonwire.Valid(args) == nil {
				d.fence("json", string(jsonwire.Indent(args)))
			} else {
				d.say("Arguments that are no JSON:")
				d.fence("text", b.Arguments)
			}
		}
		if b.Result != nil {
			d.result(b.Result)
		}
	})
}

func (d *document) result(r *transcript.Answer) {
	if len(r.Blocks) == 0 {
		d.say("(no output)")
	}
	for i := range r.Blocks {
		switch in := &r.Blocks[i]; in.Type {
		case message.TextBlock:
			d.say("Result, " + term.Plural(len(in.Text), "byte") + ":")
			d.fence("text", in.Text)
		case message.ImageBlock:
			d.image(in)
		default:
			d.fence("json", in.Text)
		}
	}
}

// fence writes text as code, cut in the middle when it is long.
func (d *document) fence(kind, text string) {
	head, tail, left := transcript.Cut(text, d.o.Cut)
	body := clean(head)
	if left > 0 {
		body = strings.TrimSuffix(body, "\n") +
			fmt.Sprintf("\n[... %s of %s bytes left out ...]\n", term.Count(int64(left)), term.Count(int64(len(text)))) + clean(tail)
	}
	d.codeBlock(kind, strings.TrimSuffix(body, "\n"))
}

// image writes an image, or why there is none.
func (d *document) image(b *transcript.Block) {
	name := b.Name
	if name == "" {
		name = "image"
	}
	raw, mediaType, ending, why := d.t.Picture(d.ctx, b)
	if raw == nil {
		d.say("*(" + inline(name) + ", attachment " + codeSpan(b.Image.ID) + ": " + why + ")*")
		return
	}
	if d.o.Image == nil {
		d.say("![" + inline(name) + "](data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(raw) + ")")
		return
	}
	link, err := d.o.Image(strings.TrimPrefix(b.Image.ID, "sha256:")+ending, raw)
	if err != nil {
		d.err = err
		return
	}
	d.say("![" + inline(name) + "](" + linkText(link) + ")")
}

// linkText is a link that nothing can end early.
func linkText(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("<>()[]\\\"'`", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func (d *document) end() {
	t := d.t
	if t.OpenTurn && d.o.Before == 0 {
		d.say("*The last turn is open.*")
	}
	note := "Exported by outcrop."
	switch n := t.Masked(); {
	case d.o.Raw:
	case n == 0:
		note += " Nothing that looks like a secret was found."
	default:
		note += " " + term.Plural(n, "place") + " that looked like a secret masked."
	}
	d.w.WriteString("---\n\n" + note + "\n")
}

// htmlLine is text for one line of HTML.
func htmlLine(s string) string { return html.EscapeString(term.OneLine(s)) }
