// Package handover writes a session as a file that another program resumes:
// Claude Code (claude --resume ID) or Codex (codex resume ID). What is handed
// over is what the model sees: the surface, cleaned as for a request, so that
// the other program's next request is a valid one.
//
// Neither program documents its files. What is known of them, and written here,
// is in the comments of claude.go and codex.go; both readers pass over members
// that they do not know. Ids are made from the session's, so the same session
// gives the same file.
//
// What cannot be handed over is counted in the report: reasoning that only its
// own provider can read again, the system prompt and the tools, which are the
// other program's own. Past calls keep the names of our tools: a model reads
// them as what was done.
package handover

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange/masking"
	"github.com/outcrop-dev/outcrop/exchange/modelview"
	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
)

// Options: the zero value hands over the whole session, masked.
type Options struct{ modelview.Options }

// Report says what was written.
type Report struct {
	*modelview.View
	ID       string // under which the other program knows the session
	Place    string // of the file, below the home directory, slashes between its parts
	Resume   string // the command that goes on with it
	Messages int
	// What the file does not have.
	Reasoning int // blocks
	Images    int // whose bytes are missing
	Marks     int // failed results of which the file cannot say that they failed
}

// said is one message that is handed over, with what the log knows of it.
type said struct {
	message.Message
	kind        kind
	time        int64
	seq         outcrop.Seq
	usage       *message.Usage
	interrupted bool
}

type kind uint8

const (
	prompt kind = iota
	added       // context, a summary: what no person typed
	checkpoint
	reply
	results
)

// writer is what both files are written with.
type writer struct {
	ctx     context.Context
	w       *bufio.Writer
	objects store.Objects
	rep     Report
	model   string
	cwd     string
}

// begin reads the session and makes its messages.
func begin(ctx context.Context, w io.Writer, src transcript.Source, o Options) (*writer, []said, error) {
	v, err := modelview.Read(ctx, src, o.Options)
	if err != nil {
		return nil, nil, err
	}
	out := &writer{ctx: ctx, w: bufio.NewWriterSize(w, 64<<10), objects: src.Objects(), rep: Report{View: v}, cwd: "/"}
	if v.Header.Cwd != nil {
		m := masking.Masker{Raw: o.Raw}
		out.cwd = m.Text(*v.Header.Cwd)
		v.Masked += m.Found
	}
	cfg, _, _ := v.Config()
	out.model = cfg.Model
	byID := map[string][]*modelview.Node{}
	for i := range v.Nodes {
		n := &v.Nodes[i]
		byID[n.Message.ID] = append(byID[n.Message.ID], n)
	}
	var all []said
	at := v.Header.CreatedAt
	for _, m := range v.Messages() {
		s := said{Message: m, kind: added, time: at, seq: -1}
		if list := byID[m.ID]; len(list) > 0 {
			n := list[0]
			byID[m.ID] = list[1:]
			s.time, s.seq, s.usage, s.interrupted = n.Time, n.Seq, n.Usage, n.Interrupted
			at = n.Time
		}
		switch {
		case m.Role == message.Assistant:
			s.kind = reply
		case len(m.Content) > 0 && m.Content[0].Type == message.ToolResultBlock:
			s.kind = results
		case m.Source.CompactionID != "":
			s.kind = checkpoint
		case m.Source.Kind == message.FromUser.Kind:
			s.kind = prompt
		}
		all = append(all, s)
	}
	// The message that stands behind a last reply, so that a request ends with
	// the user, is the next prompt's place.
	if n := len(all); n > 1 && all[n-1].seq < 0 && all[n-1].kind == added && all[n-2].kind == reply {
		all = all[:n-1]
	}
	out.rep.Messages = len(all)
	return out, all, nil
}

// uuid makes a UUID (version 8, from a digest) of texts.
func uuid(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p)) + ":" + p))
	}
	b := h.Sum(nil)[:16]
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	s := hex.EncodeToString(b)
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// stamp is a time as both programs write it.
func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// picture is an image as a data URL, or as its parts.
func (w *writer) picture(b *message.Block) (mediaType, data string, ok bool) {
	id, _ := jsonwire.Text(jsonwire.Get(b.Attachment, "attachmentId"))
	mediaType, _ = jsonwire.Text(jsonwire.Get(b.Attachment, "mediaType"))
	if w.objects != nil && id != "" {
		if raw, err := w.objects.Get(w.ctx, id); err == nil {
			return mediaType, base64.StdEncoding.EncodeToString(raw), true
		}
	}
	w.rep.Images++
	return "", "", false
}

// missing stands for an image whose bytes are not there.
func missing(b *message.Block) string {
	name, _ := jsonwire.Text(jsonwire.Get(b.Attachment, "name"))
	if name == "" {
		name = "image"
	}
	return fmt.Sprintf("[%s is missing]", name)
}

func (w *writer) line(b []byte) {
	w.w.Write(b)
	w.w.WriteByte('\n')
}
