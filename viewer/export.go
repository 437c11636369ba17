package viewer

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
)

// Export is a form in which a session can be taken away.
type Export struct {
	Name   string // "md"
	Ending string // of a file, ".md"
	Type   string // of its content, "text/markdown; charset=utf-8"
	What   string // one line for people
	// Write writes a stored session. Unless raw, what looks like a secret is
	// masked.
	Write func(ctx context.Context, session string, raw bool, w io.Writer) error
}

// mostExports are made at a time.
const mostExports = 2

// export sends a session in another form, to be kept as a file.
func (v *Viewer) export(a *answerer) error {
	p := a.params()
	var form *Export
	for i := range v.o.Exports {
		if v.o.Exports[i].Name == p.q.Get("format") {
			form = &v.o.Exports[i]
		}
	}
	if form == nil {
		var names []string
		for _, e := range v.o.Exports {
			names = append(names, e.Name)
		}
		return badRequest("format: give one of %s", strings.Join(names, ", "))
	}
	s, done, err := v.use(a)
	if err != nil {
		return err
	}
	defer done()
	ctx := a.r.Context()
	if r := v.runningOf(s.ID()); r != nil {
		// The store has what is durable; while a turn runs, that is what there is.
		_ = r.Agent().Maintain(ctx, func(*outcrop.Session) error { return nil })
	}
	select {
	case v.exporting <- struct{}{}:
		defer func() { <-v.exporting }()
	case <-ctx.Done():
		return ctx.Err()
	}
	w := &download{a: a, form: form, name: fileName(s.ID()) + form.Ending}
	if a.r.Method == http.MethodHead {
		w.begin()
		return nil
	}
	err = form.Write(ctx, s.ID(), a.veil().Show, w)
	switch {
	case err == nil && !w.begun:
		w.begin()
	case err != nil && !w.begun:
		return mendable(err)
	case err != nil:
		v.log.Warn("an export was not finished", "session", s.ID(), "format", form.Name, "err", err)
		// What was sent must not pass for all of it: the connection is cut.
		panic(http.ErrAbortHandler)
	}
	return nil
}

// download is an answer that becomes a file.
type download struct {
	a     *answerer
	form  *Export
	name  string
	begun bool
}

func (d *download) begin() {
	d.begun = true
	h := d.a.w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Content-Type", d.form.Type)
	h.Set("Content-Disposition", `attachment; filename="`+d.name+`"`)
	d.a.w.WriteHeader(http.StatusOK)
}

// Write implements io.Writer.
func (d *download) Write(b []byte) (int, error) {
	if !d.begun {
		d.begin()
	}
	if err := d.a.write(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// longestName is of a file, in bytes, without its ending.
const longestName = 100

// fileName is a session's id as the name of a file.
func fileName(id string) string {
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, id)
	return "session-" + name[:min(len(name), longestName)]
}

// exportForms are those that the server has.
func (v *Viewer) exportForms() []exportForm {
	out := []exportForm{}
	for _, e := range v.o.Exports {
		out = append(out, exportForm{e.Name, e.Ending, facts.Text(e.What)})
	}
	return out
}

type exportForm struct {
	Name   string     `json:"name"`
	Ending string     `json:"ending"`
	What   facts.Text `json:"what"`
}
