package chat

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/chat/edit"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/internal/work"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// begin shows what the chat is about.
func (c *Chat) begin() {
	c.history = openHistory(c.w, &c.m.edit.History)
	m, dir := c.m, c.w.Dir()
	m.note(m.style.Bold, "outcrop chat, "+term.Line(c.w.Model().Name()))
	m.note(m.style.Dim, "in "+term.Line(dir))
	if c.pages != nil {
		// In one piece, so that a terminal knows it for an address.
		m.print("page: " + m.style.Cyan(c.pages.URL))
	}
	m.note(m.style.Dim, "/help lists the commands; Ctrl-C stops a turn, and leaves")
	m.space()
}

// open takes up a session: what is pending in it, how full the window is, its
// last turn, and what a crash cut.
func (m *model) open(s *outcrop.Session, with work.Model, step, turn []message.Message) {
	m.queue = queue{}
	for _, msg := range step {
		m.queue.step = append(m.queue.step, queuedOf(msg))
	}
	for _, msg := range turn {
		m.queue.turn = append(m.queue.turn, queuedOf(msg))
	}
	m.calls, m.shown, m.asked = calls{}, nil, map[string]string{}
	m.with(with)
	m.gauge.measure = func() int64 { return measure(s) }
	m.gauge.again()
	m.lastTurn(s.Log())
	cut, wasCut := work.LastCut(s.Log())
	if wasCut {
		if cut.Text != "" {
			m.answer.Write(cut.Text)
			m.flush()
			m.space()
		}
		m.note(m.style.Yellow, cut.String())
	}
	switch n := m.queue.len(); {
	case n > 0:
		m.note(m.style.Yellow, term.Plural(n, "message")+" pending; /continue runs them, /clear-pending drops them")
	case wasCut:
		m.note(m.style.Yellow, "/continue goes on from there")
	}
}

// with takes a model.
func (m *model) with(with work.Model) {
	m.name, m.gauge.window, m.cost.price = with.Name(), with.Window, with.Price
}

// measure estimates what the next request would send.
func measure(s *outcrop.Session) (n int64) {
	if h, ok := s.RequestHeader(); ok {
		if _, system, tools, err := llm.ParseHeader(h.Raw); err == nil {
			n = llm.EstimateHeader(system, tools)
		}
	}
	for _, m := range s.Messages() {
		if msg, err := message.Parse(m.Raw); err == nil {
			n += llm.EstimateTokens(msg)
		}
	}
	return n
}

// lastTurn shows the last turn of a log again.
func (m *model) lastTurn(log outcrop.Log) {
	start, turn := outcrop.Seq(-1), int64(0)
	for seq := outcrop.Seq(log.Len() - 1); seq >= 0; seq-- {
		if ev := log.At(seq); ev.Type == outcrop.TypeTurnStart {
			start = seq
			turn, _ = jsonwire.Int(jsonwire.Get(ev.Data, "turn"))
			break
		}
	}
	if start < 0 {
		return
	}
	if turn > 1 {
		m.note(m.style.Dim, fmt.Sprintf("(turn %d of this session; outcrop show prints all of them)", turn))
	}
	gauge := m.gauge
	m.replay = true
	for ev := range outcrop.Events(log, start) {
		if ev.Type == outcrop.TypeInboxSpliced {
			continue // the queue is known
		}
		if _, _, edit := ev.Op.Range(); edit && brief.IsCheckpoint(jsonwire.Get(brief.MessageOf(ev), "source")) {
			continue
		}
		m.event(ev)
	}
	m.flush()
	m.replay, m.gauge = false, gauge
	m.asked = map[string]string{}
}

// existing are those of the files that are there, and the names that are none:
// what a person wrote with an @ and means something else stays text.
func existing(dir string, names []string) (files, absent []string) {
	for _, name := range names {
		found := false
		for _, n := range [...]string{name, strings.TrimRight(name, ".,;:!?)")} {
			p := n
			if !filepath.IsAbs(p) {
				p = filepath.Join(dir, p)
			}
			if fi, err := os.Stat(p); err == nil && fi.Mode().IsRegular() {
				files, found = append(files, n), true
				break
			}
		}
		if !found {
			absent = append(absent, name)
		}
	}
	return files, absent
}

// mostPaths is how many names of a folder are offered.
const mostPaths = 200

// paths completes a path that stands behind an @, or alone.
func paths(dir, word string) (names []string) {
	at := ""
	if strings.HasPrefix(word, "@") {
		at, word = "@", word[1:]
	}
	folder, base := filepath.Split(word)
	from := folder
	if !filepath.IsAbs(from) {
		from = filepath.Join(dir, from)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, base) || base == "" && strings.HasPrefix(name, ".") || strings.ContainsAny(name, " \t\n") {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		if names = append(names, at+folder+name); len(names) == mostPaths {
			break
		}
	}
	return names
}

// historyFile keeps what was sent for other chats: $STATE/chat-history, one JSON
// string a line, 0600. A chat that cannot write it goes on without.
type historyFile struct {
	path string
	warn func(error)
}

// openHistory reads the history; a file that grew long is cut.
func openHistory(w *work.Work, h *edit.History) *historyFile {
	f := &historyFile{warn: func(err error) { w.Desk().Logger.Warn("the history of the input cannot be kept", "err", err) }}
	home, err := w.Desk().StateHome()
	if err != nil {
		f.warn(err)
		return f
	}
	path := filepath.Join(home, "chat-history")
	text, err := readHistory(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		f.warn(err)
		return f
	}
	f.path = path
	if h.Load(text) > 2*edit.MaxHistory {
		f.rewrite(h.Entries())
	}
	return f
}

// maxHistoryFile is how much of a history file is read, in bytes: its end.
const maxHistoryFile = 16 << 20

func readHistory(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(fi.Size()-maxHistoryFile, 0)
	b := make([]byte, fi.Size()-from)
	n, err := f.ReadAt(b, from)
	if n < len(b) && err != nil {
		return nil, err
	}
	return b, nil
}

// add appends an entry.
func (f *historyFile) add(entry string) {
	if f.path == "" || !edit.Keeps(entry) {
		return
	}
	err := os.MkdirAll(filepath.Dir(f.path), 0o700)
	if err == nil {
		var file *os.File
		if file, err = os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err == nil {
			_, err = file.Write(edit.Entry(entry))
			err = errors.Join(err, file.Close())
		}
	}
	if err != nil {
		f.warn(err)
		f.path = ""
	}
}

// rewrite puts a shorter file in the place of a long one.
func (f *historyFile) rewrite(entries []string) {
	var b []byte
	for _, e := range entries {
		b = append(b, edit.Entry(e)...)
	}
	tmp, err := os.CreateTemp(filepath.Dir(f.path), ".chat-history-*")
	if err == nil {
		_, err = tmp.Write(b)
		err = errors.Join(err, tmp.Close())
		if err == nil {
			err = os.Rename(tmp.Name(), f.path)
		}
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}
	if err != nil {
		f.warn(err)
	}
}

// contained turns a panic into an error.
func contained(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}
