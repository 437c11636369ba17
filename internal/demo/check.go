package demo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/requests"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
)

// check holds what was done against what is claimed. What does not hold is a
// fault; an error means that it cannot be checked.
func (d *demo) check(ctx context.Context) error {
	if err := d.checkSurface(); err != nil {
		return err
	}
	if err := d.checkRequests(); err != nil {
		return err
	}
	d.checkCrash()
	for _, path := range [...]string{d.logPath(), d.Crash.Path} {
		if err := d.checkFile(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) fault(format string, args ...any) {
	d.Faults = append(d.Faults, fmt.Sprintf(format, args...))
}

// logPath is the session's file in the store.
func (d *demo) logPath() string {
	return filepath.Join(d.dir("store"), jsonl.ProjectKey(d.dir("work")), jsonl.EncodeSegment(sessionID), "session."+string(wire.Zstd))
}

// checkSurface appends the log once more, event by event, to a session of its
// own, and compares the live surface with a fold from nothing at each prefix.
func (d *demo) checkSurface() error {
	var ev outcrop.Event
	s, err := outcrop.New(d.header, outcrop.Options{Now: func() int64 { return ev.Time }})
	if err != nil {
		return err
	}
	for ev = range outcrop.Events(d.Log, 0) {
		if _, err := s.AppendRaw(ev); err != nil {
			return err
		}
		fold, err := outcrop.SurfaceAt(d.Log, ev.Seq)
		if err != nil {
			return err
		}
		live := s.Surface().View()
		if !slices.Equal(live.Nodes(), fold.Nodes) || live.Generation() != fold.Generation {
			d.fault("the surface at event %d is %v, folded from nothing it is %v", ev.Seq, live.Nodes(), fold.Nodes)
		}
		d.Prefixes++
	}
	if !slices.Equal(s.Surface().Nodes(), d.Nodes) {
		d.fault("the session's surface was %v, appended once more it is %v", d.Nodes, s.Surface().Nodes())
	}
	return nil
}

// checkRequests rebuilds every request from the log alone and compares it, and
// its digest, with what the model was given.
func (d *demo) checkRequests() error {
	n := 0
	for ev := range outcrop.Events(d.Log, 0) {
		var rebuilt []byte
		var digest string
		var err error
		switch ev.Type {
		case outcrop.TypeOutcropRequest:
			rebuilt, digest, err = d.rebuildTurn(ev)
		case outcrop.TypeOutcropSummarizer:
			rebuilt, digest, err = d.rebuildSummary(ev)
		default:
			continue
		}
		if err != nil {
			return err
		}
		n++
		want, _ := jsonwire.Text(jsonwire.Get(ev.Data, "digest"))
		switch {
		case n > len(d.sent):
			d.fault("request %d was never sent", n)
		case digest != want:
			d.fault("request %d has the digest %s, recorded is %s", n, digest, want)
		case !bytes.Equal(rebuilt, requestText(d.sent[n-1])):
			d.fault("request %d cannot be rebuilt from the log", n)
		default:
			d.Rebuilt++
		}
	}
	if n != len(d.sent) {
		d.fault("%d requests were sent and %d are in the log", len(d.sent), n)
	}
	return nil
}

func (d *demo) rebuildTurn(ev outcrop.Event) (text []byte, digest string, err error) {
	prefix, _ := jsonwire.Int(jsonwire.Get(ev.Data, "prefix"))
	r, err := requests.Rebuild(d.Log, requests.Attempt{Prefix: outcrop.Seq(prefix)})
	if err != nil {
		return nil, "", err
	}
	req, err := r.Typed()
	return requestText(req), r.Digest, err
}

func (d *demo) rebuildSummary(ev outcrop.Event) (text []byte, digest string, err error) {
	c, err := history.RebuildCall(d.Log, ev.Seq)
	if err != nil {
		return nil, "", err
	}
	req := llm.Request{Messages: llm.Build(c.Nodes)}
	req.Config, req.System, req.Tools, err = llm.ParseHeader(c.Header)
	return requestText(req), c.Digest, err
}

// requestText is everything of a request that a model gets.
func requestText(req llm.Request) []byte {
	b := slices.Clone([]byte(llm.HeaderJSON(req.Config, req.System, req.Tools)))
	for i := range req.Messages {
		b = req.Messages[i].AppendJSON(append(b, '\n'))
	}
	return b
}

// checkCrash looks at what the repair added.
func (d *demo) checkCrash() {
	c := &d.Crash
	if c.stored != c.LastEvent+1 {
		d.fault("%d events were found after the crash, it left %d", c.stored, c.LastEvent+1)
	}
	var types []outcrop.Type
	for ev := range outcrop.Events(c.log, c.stored) {
		types = append(types, ev.Type)
		if ev.Type == outcrop.TypeToolResult {
			c.Results++
			if code, _ := jsonwire.Text(jsonwire.Get(jsonwire.Get(ev.Data, "error"), "code")); code != "TOOL_OUTCOME_UNKNOWN" {
				d.fault("the call that the crash cut is closed with %q", code)
			}
		}
	}
	want := []outcrop.Type{outcrop.TypeToolResult, outcrop.TypeStepEnd, outcrop.TypeTurnEnd, outcrop.TypeEndSeed}
	if !slices.Equal(types, want) {
		d.fault("the repair added %v", types)
	}
	if !c.same {
		d.fault("the repair changed the workspace")
	}
	if d.asked != 2 {
		d.fault("%d calls were asked about, not 2", d.asked)
	}
}

// checkFile verifies a log file.
func (d *demo) checkFile(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	enc, _ := wire.EncodingOf(path)
	findings, sum := doctor.Verify(ctx, doctor.Target{Name: path, R: f, Size: fi.Size(), Encoding: enc}, doctor.Options{})
	for finding := range findings {
		d.fault("%s: %s: %s", path, finding.Code, finding.Message)
	}
	if sum.Err != nil {
		return sum.Err
	}
	if !sum.OK {
		d.fault("%s is not ok", path)
	}
	return nil
}
