package jetstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/outcrop-dev/outcrop/store"
)

// flight is one message on its way into a stream. It is kept until its fate is
// known, whatever happens to the connection meanwhile.
type flight struct {
	message
	id       string // of the session
	stream   string
	out      *nats.Msg
	expected uint64 // the sequence of the subject's last message; 0 none
	attempt  int
	ack      natsjs.PubAckFuture // nil: the last attempt was not sent
	sendErr  error
	sent     time.Time

	// Of a message whose text is in an object.
	text  []byte
	named string
	put   time.Time
}

// conflict reports the two errors with which servers refuse a message whose
// expected last sequence does not hold: that of a stream with one replica, and
// that of one with several.
func conflict(err error) bool {
	var api *natsjs.APIError
	return errors.As(err, &api) &&
		(api.ErrorCode == natsjs.JSErrCodeStreamWrongLastSequence || api.ErrorCode == natsjs.JSErrCodeStreamWrongLastSequenceConstant)
}

// noRoom reports a refusal that asking again at once does not change.
func noRoom(err error) bool {
	var api *natsjs.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode {
	case codeMaxBytes, codeStorage, natsjs.JSErrCodeStreamMessageExceedsMaximum:
		return true
	}
	return false
}

// prepare makes the message that publishes m.
func (lk *link) prepare(id string, m message, expected uint64) *flight {
	f := &flight{message: m, id: id, stream: lk.realm.stream(lk.realm.shard(id)), expected: expected}
	f.out = m.nats(lk.realm.subject(id))
	f.out.Header[natsjs.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(expected, 10)}
	return f
}

// send publishes a message once more, and does not wait.
func (lk *link) send(f *flight) {
	f.attempt++
	m := &nats.Msg{Subject: f.out.Subject, Data: f.out.Data, Header: maps.Clone(f.out.Header)}
	// Each attempt has an id of its own. Nothing relies on it: servers forget
	// ids, and may remember one whose message they never stored.
	m.Header[natsjs.MsgIDHeader] = []string{fmt.Sprintf("%s.%d.%d.%s.%d", token(f.id), f.Epoch, f.Seq, f.Kind, f.attempt)}
	f.sent = time.Now()
	f.ack, f.sendErr = lk.js.PublishMsgAsync(m, natsjs.WithRetryAttempts(0), natsjs.WithStallWait(lk.s.opt.AckWait))
}

// settle waits until the fate of a message is known, and publishes it again when
// it is not stored. stored is its sequence in the stream; others may have written
// behind it since. The error is store.ErrMoved when another message stands in its
// place, and it is not stored then. With any other error its fate is open, and settle may be called again.
func (lk *link) settle(ctx context.Context, f *flight) (stored uint64, err error) {
	p := lk.s.patience(ctx)
	defer p.stop()
	for {
		seq, err := lk.acked(p.ctx, f)
		lk.hear(err)
		if err == nil {
			return seq, nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return 0, cause
		}
		// What the answer says counts for nothing: it may be about another
		// attempt. The leader's last message decides.
		last, lerr := lk.ask(p.ctx, f.stream, map[string]any{"last_by_subj": f.out.Subject})
		switch {
		case errors.Is(lerr, errNoMessage):
			last.Seq = 0
		case lerr != nil:
			lk.hear(lerr)
			if final(lerr) {
				return 0, lerr
			}
			if !p.again(lerr) {
				return 0, p.err
			}
			continue
		case f.same(last):
			lk.found(f, err)
			return last.Seq, nil
		}
		if last.Seq != f.expected {
			// Somebody wrote behind the message that was expected to be the last
			// one: the very next one says whether we were first.
			next, nerr := lk.ask(p.ctx, f.stream, map[string]any{"next_by_subj": f.out.Subject, "seq": f.expected + 1})
			switch {
			case nerr == nil && f.same(next):
				lk.found(f, err)
				return next.Seq, nil
			case nerr == nil || errors.Is(nerr, errNoMessage):
				return 0, lk.moved(f, last)
			case final(nerr):
				return 0, nerr
			case !p.again(nerr):
				return 0, p.err
			}
			continue
		}
		// It is not stored, though an earlier attempt may still be on its way:
		// at most one of them can be.
		if noRoom(err) {
			f.ack, f.sendErr = nil, err
			return 0, err
		}
		if !p.again(err) {
			return 0, p.err
		}
		if err := lk.refresh(p.ctx, f); err != nil {
			return 0, err
		}
		lk.send(f)
	}
}

func (lk *link) found(f *flight, err error) {
	lk.s.opt.Logger.Info("an acknowledgement was lost; the message is stored", "session", f.id, "kind", string(f.Kind), "seq", int64(f.Seq), "error", err)
}

// acked waits for the answer to the last attempt.
func (lk *link) acked(ctx context.Context, f *flight) (uint64, error) {
	if f.attempt == 0 || f.sendErr != nil && noRoom(f.sendErr) {
		lk.send(f)
	}
	if f.ack == nil || f.sendErr != nil {
		return 0, f.sendErr
	}
	late := time.NewTimer(max(lk.s.opt.AckWait-time.Since(f.sent), 0))
	defer late.Stop()
	select {
	case a := <-f.ack.Ok():
		if a.Duplicate || a.Stream != f.stream {
			return 0, fmt.Errorf("the answer is one for another message: stream %s, sequence %d, duplicate %t", a.Stream, a.Sequence, a.Duplicate)
		}
		return a.Sequence, nil
	case err := <-f.ack.Err():
		f.ack, f.sendErr = nil, err
		return 0, err
	case <-late.C:
		f.ack, f.sendErr = nil, nats.ErrTimeout
		return 0, nats.ErrTimeout
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// same reports whether a stored message is this one.
func (f *flight) same(r raw) bool {
	m, err := parseMessage(r.Header, r.Data, false)
	return err == nil && m.Kind == f.Kind && m.Epoch == f.Epoch && m.Owner == f.Owner && m.Seq == f.Seq && m.Gen == f.Gen && m.Chain == f.Chain
}

// moved says who wrote instead.
func (lk *link) moved(f *flight, last raw) error {
	if f.expected == 0 && f.Kind == kindBatch {
		return lk.s.exists(f.id)
	}
	what := "another program wrote the session"
	m, err := parseMessage(last.Header, last.Data, true)
	switch {
	case last.Seq == 0:
		what = "the session was removed"
	case err == nil && m.Kind == kindRemove:
		what = "the session was removed"
	case err == nil && m.Epoch > f.Epoch && m.Owner != "":
		what = "worker " + m.Owner + " took the session over"
	case err == nil && m.Epoch > f.Epoch:
		what = "another worker took the session over, and handed it back"
	}
	return lk.s.sessionProblem("append", f.id, "", store.ErrMoved, what,
		"nothing was written over it; open the session again to go on from what is there")
}
